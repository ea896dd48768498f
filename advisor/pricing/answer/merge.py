"""Several sources that know the same machines -> one price each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        covered = _covered_by(answer, lost) | covered
    return tuple(kept)


def _covered_by(answer: Answer, lost: frozenset[Place | Machine]) -> dict[Place, datetime]:
    """Since when an answer knows all that is for rent in a place: since it was asked, or as of its prices."""
    if not answer.covers:
        return {}
    known_at = {**_of_places(_newest(answer.offers)), **answer.asked_at}
    return {at: known_at.get(at, _NOW) for at in answer.covers - lost}


def _is_open(offer: Offer, covered: Mapping[Place, datetime]) -> bool:
    """Whether nobody before knew all that was for rent in its place when the offer was made."""
    asked_at = covered.get(_place(offer), _NEVER)
    return offer.retrieved_at - _ONE_TIME > asked_at


def _outdated(answers: Sequence[Answer]) -> list[frozenset[Place | Machine]]:
    """Of each answer, the places and machines of which one after it has newer prices; dated ones stay.

    Two live ones that were asked within a day tell of one time: catalogs are dated by their day.
    """
    newer_places: dict[Place, datetime] = {}
    newer_machines: dict[Machine, datetime] = {}
    outdated = []
    for answer in reversed(answers):
        machines = _newest(answer.offers)
        places = _of_places(machines)
        lost: frozenset[Place | Machine] = frozenset()
        if answer.is_live:
            lost = _older({**answer.asked_at, **places}, newer_places) | _older(machines, newer_machines)
        outdated.append(lost)
        head_start = _ONE_TIME if answer.is_live else timedelta()
        if answer.knows_all:
            _note(newer_places, places, head_start)
        else:
            _note(newer_machines, machines, head_start)
    return outdated[::-1]


def _older(asked: Mapping[Key, datetime], newer: Mapping[Key, datetime]) -> frozenset[Key]:
    return frozenset(key for key, when in asked.items() if newer.get(key, _NEVER) > when)


def _note(newer: dict[Key, datetime], days: Mapping[Key, datetime], head_start: timedelta) -> None:
    for key, when in days.items():
        newer[key] = max(when - head_start, newer.get(key, _NEVER))


def _newest(offers: Sequence[Offer]) -> dict[Machine, datetime]:
    """The newest price of each machine."""
    newest: dict[Machine, datetime] = {}
    for offer in offers:
        at = machine_of(offer)
        newest[at] = max(offer.retrieved_at, newest.get(at, offer.retrieved_at))
    return newest


def _of_places(machines: Mapping[Machine, datetime]) -> dict[Place, datetime]:
    """The newest price of each place."""
    newest: dict[Place, datetime] = {}
    for (at, _), when in machines.items():
        newest[at] = max(when, newest.get(at, when))
    return newest


def _place(offer: Offer) -> Place:
    return offer.provider, offer.region, offer.market


def machine_of(offer: Offer) -> Machine:
    """Which machine an offer is of, whoever tells its price."""
    return _place(offer), offer.instance_type
