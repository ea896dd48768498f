"""Offers that match a query, merged from the answers of several sources, one price for each machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from advisor.core.errors import InputError, StaleCatalogError
from advisor.core.findings import Finding
from advisor.core.findings.about_options import Unknown
from advisor.core.findings.about_spending import GpuFamily, PricesComputed, PricesNotLive, PricesStale
from advisor.core.gpus import resolve_gpus
from advisor.core.iterables import grouped
from advisor.core.units import DAY_S, format_duration
from advisor.core.values import Offer, Price
from advisor.pricing.providers import load_providers
from advisor.pricing.sources.protocol import DERIVED, Freshness, OfferQuery, Place, PriceSource, freshness_of
from advisor.pricing.sources.snapshot import SnapshotSource

Machine = tuple[Place, str]
"""Place and instance type."""

Key = TypeVar("Key", Place, Machine)
_ONE_TIME = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
_NOW = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one source knows."""

    source: str
    is_live: bool
    offers: tuple[Offer, ...]
    providers: tuple[str, ...] = ()
    """Of whom it may know prices, whether or not any match."""
    covers: frozenset[Place] = frozenset()
    """Places of which it knows every machine, so that what it does not name is not for rent there."""
    unpriced: frozenset[Machine] = frozenset()
    """Machines there that are for rent, but of which it has no price."""
    asked_at: Mapping[Place, datetime] = field(default_factory=dict)
    """When places were last asked of, also those without an offer."""
    knows_all: bool = True
    """What it does not name beside what it names is not for rent; else it is not known."""
    warnings: tuple[Finding, ...] = ()
    """What was left out of it, or is doubtful."""


def merged(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """Each answer with the offers in which it has the word, and the gaps that others may fill.

    Of a machine in a region and market the first answer that names it is taken, with all its zones; a place
    that an earlier answer covers is left to that one, but for machines that it could not price. What was
    pulled long ago gives way to newer prices of the place, and so does what could not be priced then. Answers
    come in order of trust.
    """
    covered: dict[Place, datetime] = {}
    unpriced: set[Machine] = set()
    named: set[Machine] = set()
    kept = []
    for answer, lost in zip(answers, _outdated(answers), strict=True):
        own = tuple(
            o for o, machine in zip(answer.offers, map(machine_of, answer.offers), strict=True)
            if (o.retrieved_at - _ONE_TIME > covered.get(machine[0], _NEVER) or machine in unpriced)
            and machine not in named and machine not in lost and machine[0] not in lost
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


def machine_of(offer: Offer) -> Machine:
    """Which machine an offer is of, from any source."""
    return (offer.provider, offer.region, offer.market), offer.instance_type


_FEW = 3
_StandIn = tuple[str, Offer]  # with the name of its source


def with_stand_ins(
    answers: Sequence[Answer], oldest: datetime | None
) -> tuple[tuple[Answer, ...], tuple[Finding, ...]]:
    """The answers, in order of trust, without stand-ins from before ``oldest``; what to say of them.

    Nothing newer can be pulled of these machines, so an old price of one is no reason to refuse all the
    others.
    """
    unpriced: set[Machine] = set()
    kept: list[Answer] = []
    stale: list[_StandIn] = []
    too_old: list[_StandIn] = []
    for answer in answers:
        if answer.is_live:
            unpriced |= answer.unpriced
        for offer in answer.offers if unpriced and not answer.is_live else ():
            if machine_of(offer) in unpriced:
                is_old = oldest is not None and offer.retrieved_at < oldest
                (too_old if is_old else stale).append((answer.source, offer))
        lost = set() if answer.is_live else {machine_of(offer) for _, offer in too_old}
        offers = tuple(o for o in answer.offers if machine_of(o) not in lost) if lost else answer.offers
        kept.append(replace(answer, offers=offers))
    return tuple(kept), (
        *_stand_in_findings(stale, is_kept=True),
        *_stand_in_findings(too_old, is_kept=False),
    )


def _stand_in_findings(stand_ins: Sequence[_StandIn], *, is_kept: bool) -> list[Finding]:
    if not stand_ins:
        return []
    machines = sorted({f"{o.provider} {o.instance_type} {o.market} in {o.region}" for _, o in stand_ins})
    return [
        PricesStale(
            examples=machines[:_FEW],
            num_machines=len(machines),
            num_prices=len(stand_ins),
            sources=list(dict.fromkeys(source for source, _ in stand_ins)),
            is_kept=is_kept,
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Offers that match a query, and what a person should know about them."""

    offers: tuple[Offer, ...]
    warnings: tuple[Finding, ...]
    prices: tuple[Price, ...] = ()
    """What an hour of each offer will cost; empty where they were not asked for."""


def load_offers(
    query: OfferQuery,
    *,
    now: datetime,
    max_age_s: float | None = None,
    fresh_s: float = DAY_S,
    answers: Sequence[Answer] | None = None,
) -> Offers:
    """Offers that match, each machine's from the first answer that knows it, with a warning about their age.

    Args:
        query: what is wanted; its ``gpus`` may also be aliases and families.
        now: for the age of the prices.
        max_age_s: greatest age in seconds; None takes any age.
        fresh_s: what was pulled longer ago is reported like a dated file.
        answers: what the sources know, in order of trust, prices above the query's limit included; None
            asks the shipped snapshot alone.

    Raises:
        InputError: a time without a zone.
        UnknownGpuError: the query names a GPU that does not exist.
        StaleCatalogError: a matching price is older than ``max_age_s``.
        CatalogError: a price file is missing or broken.
    """
    if now.tzinfo is None:
        raise InputError("now has no time zone, and ages would be wrong: datetime.now(UTC) has one.")
    query, families = _resolve_gpus(query)
    if answers is None:
        answers = [answer_of(SnapshotSource(), query)]
    matching = [
        replace(answer, offers=tuple(filter(query.matches, answer.offers))) for answer in merged(answers)
    ]
    oldest = None if max_age_s is None else now - timedelta(seconds=min(max_age_s, now.timestamp()))
    kept, old = with_stand_ins(matching, oldest)
    offers = tuple(offer for answer in kept for offer in answer.offers)
    if max_age_s is not None:
        _refuse_stale(offers, now, max_age_s)
    dated = [o for answer in kept for o in answer.offers if not answer.is_live or _age_s(o, now) > fresh_s]
    doubts = [warning for answer in answers for warning in answer.warnings]
    return Offers(offers=offers, warnings=(*families, *_warnings(offers, dated, now), *old, *doubts))


def answer_of(source: PriceSource, query: OfferQuery) -> Answer:
    """What a source that is not live knows, whatever the price. Raises CatalogError: it cannot be read."""
    parts = source.offers(replace(query, max_usd_per_h=None))
    offers = tuple(offer for part in parts for offer in part.offers)
    return Answer(source=source.name, is_live=False, offers=offers, providers=providers_of(source))


def providers_of(source: PriceSource) -> tuple[str, ...]:
    """Of whom a source may know prices."""
    return source.capabilities.providers or tuple(one.provider for one in source.freshness())


def _resolve_gpus(query: OfferQuery) -> tuple[OfferQuery, list[Finding]]:
    """The query with catalog names, and which families were widened."""
    names: dict[str, None] = {}
    families: list[Finding] = []
    for text in query.gpus:
        members = [gpu.name for gpu in resolve_gpus(text)]
        names |= dict.fromkeys(members)
        if len(members) > 1:
            families.append(GpuFamily(name=text, gpus=members))
    return replace(query, gpus=tuple(names)), families


def _age_s(offer: Offer, now: datetime) -> float:
    return (now - offer.retrieved_at).total_seconds()


def _refuse_stale(offers: Sequence[Offer], now: datetime, max_age_s: float) -> None:
    stale = [offer for offer in offers if _age_s(offer, now) > max_age_s]
    if stale:
        raise StaleCatalogError(
            f"{len(stale)} of {len(offers)} prices are older than {format_duration(max_age_s)}:"
            f" {_ages(freshness_of(stale), now)}. Pull new ones with `advisor prices refresh`, allow a"
            " greater age with `prices.max_age`, or narrow the query by provider, region or market."
        )


def _warnings(offers: Sequence[Offer], dated: Sequence[Offer], now: datetime) -> list[Finding]:
    if not offers:
        return [Unknown(what="price")]
    warnings: list[Finding] = []
    if dated:
        ages = freshness_of(dated)
        warnings.append(
            PricesNotLive(
                num_dated=len(dated),
                num_prices=len(offers),
                ages=[_age_facts(one, now) for one in ages],
                is_public=any(
                    one.provider in load_providers() and _age_days(one.newest, now) for one in ages
                ),
            )
        )
    # A date of today may lie ahead of UTC by this much.
    latest = now + timedelta(hours=14)
    ahead = sorted(f.provider for f in freshness_of(offers) if f.newest > latest)
    if ahead:
        warnings.append(Unknown(what="price-date", names=ahead))
    num_derived = sum(offer.source.startswith(DERIVED) for offer in offers)
    if num_derived:
        warnings.append(
            PricesComputed(num_computed=num_derived, num_prices=len(offers), source_begins=DERIVED)
        )
    return warnings


def _age_days(moment: datetime, now: datetime) -> int:
    return max(0, (now - moment).days)


def _age_facts(freshness: Freshness, now: datetime) -> Mapping[str, str | int]:
    newest, oldest = freshness.newest, freshness.oldest
    return {
        "provider": freshness.provider,
        "newest_days": _age_days(newest, now),
        "oldest_days": _age_days(oldest, now),
        "newest_on": str(newest.date()),
        "oldest_on": str(oldest.date()),
    }


def _ages(freshness: Sequence[Freshness], now: datetime) -> str:
    """``"aws 124 to 511 days old (2025-06-28 to 2026-07-20)"`` for each provider."""
    ages = [_age_facts(one, now) for one in freshness]
    return "; ".join(
        f"{age['provider']} {_span(age['newest_days'], age['oldest_days'])} days old"
        f" ({_span(age['oldest_on'], age['newest_on'])})"
        for age in ages
    )


def _span(low: str | int, high: str | int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


PricedOffer = tuple[Offer, Price]


def cheapest_places(priced: Iterable[PricedOffer]) -> list[PricedOffer]:
    """The cheapest zone of each machine and market, in the order of the offers; a guess counts at its p90."""
    groups = grouped(priced, lambda one: (one[0].provider, one[0].instance_type, one[0].market))
    return [min(group, key=_price_order) for group in groups.values()]


def _price_order(priced: PricedOffer) -> tuple[float, tuple[int, float], str, str]:
    offer, price = priced
    return price.counted_usd_per_h, price.doubt, offer.region, offer.zone or ""
