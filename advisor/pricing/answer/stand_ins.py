"""Older prices that stand in where a live source knows a machine to be for rent, but has no price of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Offer
from advisor.pricing.answer.merge import Answer, Machine, machine_of

_FEW = 3
_StandIn = tuple[str, Offer]  # with the name of its source


def with_stand_ins(
    answers: Sequence[Answer], oldest: datetime | None
) -> tuple[tuple[Answer, ...], tuple[Finding, ...]]:
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
    return tuple(kept), (*_findings(stale, is_kept=True), *_findings(too_old, is_kept=False))


def _findings(stand_ins: Sequence[_StandIn], *, is_kept: bool) -> list[Finding]:
    if not stand_ins:
        return []
    machines = sorted({f"{o.provider} {o.instance_type} {o.market} in {o.region}" for _, o in stand_ins})
    return [
        finding(
            Code.PRICES_STALE,
            examples=machines[:_FEW],
            num_machines=len(machines),
            num_prices=len(stand_ins),
            sources=list(dict.fromkeys(source for source, _ in stand_ins)),
            is_kept=is_kept,
        )
    ]
