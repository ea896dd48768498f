"""Several sources that know the same machines -> one price each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from advisor.core.findings import Finding
from advisor.core.values import Offer
from advisor.pricing.sources.protocol import Place

__all__ = ["Answer", "Machine", "Place", "machine_of", "merged"]

Machine = tuple[Place, str]
"""Place and instance type."""

Key = TypeVar("Key", Place, Machine)
_ONE_TIME = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_NOW = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one source knows.

    Attributes:
        providers: of whom it may know prices, whether or not any match.
        covers: places of which it knows every machine, so that what it does not name is not for rent there.
        unpriced: machines there that are for rent, but of which it has no price.
        asked_at: when places were last asked of, also those without an offer.
        knows_all: what it does not name beside what it names is not for rent; else it is not known.
        warnings: what was left out of it, or is doubtful.
    """

    source: str
    is_live: bool
    offers: tuple[Offer, ...]
    providers: tuple[str, ...] = ()
    covers: frozenset[Place] = frozenset()
    unpriced: frozenset[Machine] = frozenset()
    asked_at: Mapping[Place, datetime] = field(default_factory=dict)
    knows_all: bool = True
    warnings: tuple[Finding, ...] = ()


def merged(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Each answer with the offers in which it has the word, and the gaps that others may fill.

    Of a machine in a region and market the first answer that names it is taken, with all its zones; a
    place that an earlier answer covers is left to that one, but for machines that it could not price. What
    was pulled long ago gives way to whoever knows newer prices of the place, and so does what could not be
    priced then.

    Args:
        answers: in order of trust.
    """
    covered: dict[Place, datetime] = {}
    unpriced: set[Machine] = set()
    named: set[Machine] = set()
    kept = []
    for answer, lost in zip(answers, _outdated(answers), strict=True):
        own = tuple(
            o for o in answer.offers
            if (_is_open(o, covered) or machine_of(o) in unpriced)
            and machine_of(o) not in named and not {_place(o), machine_of(o)} & lost
        )  # fmt: skip
        gaps = frozenset(machine for machine in answer.unpriced if machine[0] not in lost)
        kept.append(replace(answer, offers=own, unpriced=gaps))
        named.update(map(machine_of, own))
        unpriced |= {machine for machine in gaps if machine[0] not in covered}
        known_at = {**dict.fromkeys(answer.covers, _NOW), **_newest(answer.offers, _place), **answer.asked_at}
        covered = {at: known_at[at] for at in answer.covers - lost} | covered
    return tuple(kept)


def _is_open(offer: Offer, covered: Mapping[Place, datetime]) -> bool:
    """Whether nobody before knew all that was for rent in its place when the offer was made."""
    asked_at = covered.get(_place(offer), _NEVER)
    return offer.retrieved_at - _ONE_TIME > asked_at


def _outdated(answers: Sequence[Answer]) -> list[frozenset[Place | Machine]]:
    """Of each answer, the places and machines of which one after it has newer prices; dated ones stay.

    Two live ones that were asked within a day tell of one time: catalogs are dated by their day.
    """
    newer: dict[Place | Machine, datetime] = {}
    outdated = []
    for answer in reversed(answers):
        places, machines = _newest(answer.offers, _place), _newest(answer.offers, machine_of)
        asked: dict[Place | Machine, datetime] = {}
        if answer.is_live:
            asked = {**answer.asked_at, **places, **machines}
        outdated.append(frozenset(key for key, when in asked.items() if key in newer and newer[key] > when))
        head_start = _ONE_TIME if answer.is_live else timedelta()
        for key, when in (places if answer.knows_all else machines).items():
            newer[key] = max(when - head_start, newer.get(key, when - head_start))
    return outdated[::-1]


def _newest(offers: Sequence[Offer], key: Callable[[Offer], Key]) -> dict[Key, datetime]:
    """The newest price of each place or machine."""
    newest: dict[Key, datetime] = {}
    for offer in offers:
        at = key(offer)
        newest[at] = max(offer.retrieved_at, newest.get(at, offer.retrieved_at))
    return newest


def _place(offer: Offer) -> Place:
    return offer.provider, offer.region, offer.market


def machine_of(offer: Offer) -> Machine:
    """Which machine an offer is of, whoever tells its price."""
    return _place(offer), offer.instance_type
