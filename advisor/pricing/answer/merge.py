"""Several sources that know the same machines -> one price each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from advisor.core.findings import Finding
from advisor.core.values import Offer
from advisor.pricing.sources.protocol import Place

__all__ = ["Answer", "Machine", "Place", "machine_of", "merged"]

Machine = tuple[Place, str]
"""Place and instance type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one source knows.

    Attributes:
        providers: of whom it may know prices, whether or not any match.
        covers: places of which it knows every machine, so that what it does not name is not for rent there.
        unpriced: machines there that are for rent, but of which it has no price.
        asked_at: when places were last asked of, also those without an offer.
        warnings: what was left out of it, or is doubtful.
    """

    source: str
    is_live: bool
    offers: tuple[Offer, ...]
    providers: tuple[str, ...] = ()
    covers: frozenset[Place] = frozenset()
    unpriced: frozenset[Machine] = frozenset()
    asked_at: Mapping[Place, datetime] = field(default_factory=dict)
    warnings: tuple[Finding, ...] = ()


def merged(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Each answer with the offers in which it has the word, and the gaps that others may fill.

    Of a machine in a region and market the first answer that names it is taken, with all its zones; a
    place that an earlier answer covers is left to that one, but for machines that it could not price. What
    was pulled long ago gives way to a dated file that is newer, and so does what could not be priced then.

    Args:
        answers: in order of trust.
    """
    outdated = _outdated(answers)
    covered: set[Place] = set()
    unpriced: set[Machine] = set()
    named: set[Machine] = set()
    kept = []
    for answer in answers:
        lost = outdated if answer.is_live else frozenset()
        own = tuple(
            o for o in answer.offers
            if (_place(o) not in covered or machine_of(o) in unpriced)
            and machine_of(o) not in named and _place(o) not in lost
        )  # fmt: skip
        gaps = frozenset(machine for machine in answer.unpriced if machine[0] not in lost)
        kept.append(replace(answer, offers=own, unpriced=gaps))
        named.update(map(machine_of, own))
        unpriced |= {machine for machine in gaps if machine[0] not in covered}
        covered |= answer.covers - lost
    return tuple(kept)


def _outdated(answers: Sequence[Answer]) -> frozenset[Place]:
    """Places of live answers whose newest price is older than what a dated answer after them has there."""
    pulled: dict[Place, datetime] = {}
    outdated: set[Place] = set()
    for answer in answers:
        if answer.is_live:
            pulled |= {at: max(when, pulled.get(at, when)) for at, when in answer.asked_at.items()}
        for offer in answer.offers:
            place = _place(offer)
            if answer.is_live:
                pulled[place] = max(offer.retrieved_at, pulled.get(place, offer.retrieved_at))
            elif place in pulled and offer.retrieved_at > pulled[place]:
                outdated.add(place)
    return frozenset(outdated)


def _place(offer: Offer) -> Place:
    return offer.provider, offer.region, offer.market


def machine_of(offer: Offer) -> Machine:
    """Which machine an offer is of, whoever tells its price."""
    return _place(offer), offer.instance_type
