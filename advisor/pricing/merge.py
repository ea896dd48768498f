"""Several sources that know the same machines -> one price each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.types import Market, Offer

Place = tuple[str, str, Market]
"""Provider, region, market."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one source knows.

    Attributes:
        providers: of whom it may know prices, whether or not any match.
        covers: places of which it knows every machine, so that what it does not name is not for rent there.
    """

    source: str
    is_live: bool
    offers: tuple[Offer, ...]
    providers: tuple[str, ...] = ()
    covers: frozenset[Place] = frozenset()


def merged(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Each answer with the offers in which it has the word.

    Of a machine in a region and market the first answer that names it is taken, with all its zones; a
    place that an earlier answer covers is left to that one.

    Args:
        answers: in order of trust.
    """
    covered: set[Place] = set()
    named: set[tuple[Place, str]] = set()
    kept = []
    for answer in answers:
        own = tuple(o for o in answer.offers if _place(o) not in covered and _machine(o) not in named)
        kept.append(replace(answer, offers=own))
        named.update(map(_machine, own))
        covered |= answer.covers
    return tuple(kept)


def _place(offer: Offer) -> Place:
    return offer.provider, offer.region, offer.market


def _machine(offer: Offer) -> tuple[Place, str]:
    return _place(offer), offer.instance_type
