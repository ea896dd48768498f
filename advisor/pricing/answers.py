"""Offers that match a query, merged from the answers of several sources, one price for each machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter

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
        # It knows all that is for rent in a place since it was asked, or as of its prices.
        known_at = {**_of_places(_newest(answer.offers)), **answer.asked_at} if answer.covers else {}
        covered = {at: known_at.get(at, _NOW) for at in answer.covers - lost} | covered
    return tuple(kept)


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
        asked = {**answer.asked_at, **places}
        lost: set[Place | Machine] = {at for at, when in asked.items() if newer_places.get(at, _NEVER) > when}
        lost |= {of for of, when in machines.items() if newer_machines.get(of, _NEVER) > when}
        outdated.append(frozenset(lost if answer.is_live else ()))
        head_start = _ONE_TIME if answer.is_live else timedelta()
        for at, when in places.items() if answer.knows_all else ():
            newer_places[at] = max(when - head_start, newer_places.get(at, _NEVER))
        for machine, when in () if answer.knows_all else machines.items():
            newer_machines[machine] = max(when - head_start, newer_machines.get(machine, _NEVER))
    return outdated[::-1]


def _newest(offers: Sequence[Offer]) -> dict[Machine, datetime]:
    """The newest price of each machine."""
    return {of: max(one.retrieved_at for one in group) for of, group in grouped(offers, machine_of).items()}


def _of_places(machines: Mapping[Machine, datetime]) -> dict[Place, datetime]:
    """The newest price of each place."""
    return {at: max(machines[of] for of in group) for at, group in grouped(machines, itemgetter(0)).items()}


def machine_of(offer: Offer) -> Machine:
    """Which machine an offer is of, from any source."""
    return (offer.provider, offer.region, offer.market), offer.instance_type


_FEW = 3


def with_stand_ins(
    answers: Sequence[Answer], oldest: datetime | None
) -> tuple[tuple[Answer, ...], list[Finding]]:
    """The answers, in order of trust, without stand-ins from before ``oldest``; what to say of them.

    Nothing newer can be pulled of these machines, so an old price of one is no reason to refuse all the
    others.
    """
    unpriced: set[Machine] = set()
    kept: list[Answer] = []
    stand_ins: list[tuple[bool, str, Offer]] = []  # whether it is kept, the name of its source
    for answer in answers:
        if answer.is_live:
            unpriced |= answer.unpriced
            kept.append(answer)
            continue
        stand_ins += [
            (oldest is None or offer.retrieved_at >= oldest, answer.source, offer)
            for offer in (answer.offers if unpriced else ())
            if machine_of(offer) in unpriced
        ]
        lost = {machine_of(offer) for is_kept, _, offer in stand_ins if not is_kept}
        offers = tuple(o for o in answer.offers if machine_of(o) not in lost) if lost else answer.offers
        kept.append(replace(answer, offers=offers))
    findings: list[Finding] = []
    for is_kept, group in sorted(grouped(stand_ins, itemgetter(0)).items(), reverse=True):
        machines = sorted({f"{o.provider} {o.instance_type} {o.market} in {o.region}" for *_, o in group})
        sources = list(dict.fromkeys(source for _, source, _ in group))
        findings.append(
            PricesStale(
                examples=machines[:_FEW],
                num_machines=len(machines),
                num_prices=len(group),
                sources=sources,
                is_kept=is_kept,
            )
        )
    return tuple(kept), findings


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
    members = {text: [gpu.name for gpu in resolve_gpus(text)] for text in query.gpus}
    query = replace(query, gpus=tuple(dict.fromkeys(name for names in members.values() for name in names)))
    families = [GpuFamily(name=text, gpus=names) for text, names in members.items() if len(names) > 1]
    if answers is None:
        answers = [answer_of(SnapshotSource(), query)]
    matching = [
        replace(answer, offers=tuple(filter(query.matches, answer.offers))) for answer in merged(answers)
    ]
    oldest = None if max_age_s is None else now - timedelta(seconds=min(max_age_s, now.timestamp()))
    kept, old = with_stand_ins(matching, oldest)
    offers = tuple(offer for answer in kept for offer in answer.offers)
    if stale := [o for o in offers if max_age_s is not None and _age_s(o, now) > max_age_s]:
        raise StaleCatalogError(
            f"{len(stale)} of {len(offers)} prices are older than {format_duration(max_age_s or 0.0)}:"
            f" {_ages(freshness_of(stale), now)}. Pull new ones with `advisor prices refresh`, allow a"
            " greater age with `prices.max_age`, or narrow the query by provider, region or market."
        )
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


def _age_s(offer: Offer, now: datetime) -> float:
    return (now - offer.retrieved_at).total_seconds()


def _warnings(offers: Sequence[Offer], dated: Sequence[Offer], now: datetime) -> list[Finding]:
    if not offers:
        return [Unknown(what="price")]
    warnings: list[Finding] = []
    if dated:
        ages = [_age_facts(one, now) for one in freshness_of(dated)]
        is_public = any(one["provider"] in load_providers() and one["newest_days"] for one in ages)
        warnings.append(
            PricesNotLive(num_dated=len(dated), num_prices=len(offers), ages=ages, is_public=is_public)
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


def _age_facts(freshness: Freshness, now: datetime) -> Mapping[str, str | int]:
    newest, oldest = freshness.newest, freshness.oldest
    return {
        "provider": freshness.provider,
        "newest_days": max(0, (now - newest).days),
        "oldest_days": max(0, (now - oldest).days),
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

    def order(one: PricedOffer) -> tuple[float, tuple[int, float], str, str]:
        offer, price = one
        return price.counted_usd_per_h, price.doubt, offer.region, offer.zone or ""

    groups = grouped(priced, lambda one: (one[0].provider, one[0].instance_type, one[0].market))
    return [min(group, key=order) for group in groups.values()]
