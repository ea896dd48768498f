"""Older prices that stand in where a live source knows a machine to be for rent, but has no price of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from advisor.core.values import Offer
from advisor.pricing.answer.merge import Answer, Machine, machine_of

_FEW = 3
_StandIn = tuple[str, Offer]  # with the name of its source


def with_stand_ins(
    answers: Sequence[Answer], oldest: datetime | None
) -> tuple[tuple[Answer, ...], tuple[str, ...]]:
    """The answers without stand-ins that are too old, and what to say of all stand-ins.

    Nothing newer can be pulled of these machines, so an old price of one is left out: it is no reason to
    refuse all the others.

    Args:
        answers: merged, in order of trust.
        oldest: when a price must have been true at the earliest; None takes any.
    """
    unpriced: set[Machine] = set()
    kept: list[Answer] = []
    stale: list[_StandIn] = []
    too_old: list[_StandIn] = []
    for answer in answers:
        if answer.is_live:
            unpriced |= answer.unpriced
        for offer in () if answer.is_live else answer.offers:
            if machine_of(offer) in unpriced:
                is_old = oldest is not None and offer.retrieved_at < oldest
                (too_old if is_old else stale).append((answer.source, offer))
        lost = set() if answer.is_live else {machine_of(offer) for _, offer in too_old}
        kept.append(replace(answer, offers=tuple(o for o in answer.offers if machine_of(o) not in lost)))
    told = (
        *_in_words(stale, "stand in, of the day that they show"),
        *_in_words(too_old, "are older than allowed and left out"),
    )
    return tuple(kept), told


def _in_words(found: Sequence[_StandIn], what: str) -> list[str]:
    if not found:
        return []
    machines = sorted({f"{o.provider} {o.instance_type} {o.market} in {o.region}" for _, o in found})
    sources = ", ".join(dict.fromkeys(source for source, _ in found))
    rest = f" and {len(machines) - _FEW} more" if len(machines) > _FEW else ""
    named = f"{', '.join(machines[:_FEW])}{rest}"
    told = f"the last pull could not price {named}: {len(found)} stale prices of {sources} {what}"
    return [f"{told}; `advisor prices sources` says why"]
