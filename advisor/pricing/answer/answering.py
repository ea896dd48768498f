"""Prices: sources -> offers that match a query, each with its date and where it comes from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from advisor.core.errors import InputError, StaleCatalogError
from advisor.core.findings import Code, Finding, finding
from advisor.core.gpus import resolve_gpus
from advisor.core.limits import check_each, check_kind, check_number
from advisor.core.units import DAY_S, format_duration
from advisor.core.values import Offer, Price
from advisor.pricing.answer.merge import Answer, merged
from advisor.pricing.answer.stand_ins import with_stand_ins
from advisor.pricing.catalog.renters import load_renters
from advisor.pricing.sources.protocol import Freshness, Part, PriceSource, freshness_of
from advisor.pricing.sources.query import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource

__all__ = ["DERIVED", "Answer", "Freshness", "OfferQuery", "Offers", "Part", "PriceSource", "load_offers"]

DERIVED = "derived from"
"""How the source of a price begins that was computed from others and never quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Offers that match a query, and what a person should know about them.

    Attributes:
        prices: what an hour of each offer will cost; empty where nobody asked.
    """

    offers: tuple[Offer, ...]
    warnings: tuple[Finding, ...]
    prices: tuple[Price, ...] = ()


def load_offers(
    query: OfferQuery,
    *,
    now: datetime,
    max_age_s: float | None = None,
    fresh_s: float = DAY_S,
    answers: Sequence[Answer] | None = None,
) -> Offers:
    """Offers that match, each machine's from the first answer that knows it, with a warning that tells ages.

    Args:
        query: what is wanted; its ``gpus`` may also be aliases and families.
        now: for the age of the prices.
        max_age_s: greatest age in seconds; None takes any age.
        fresh_s: what was pulled longer ago is told like a dated file.
        answers: what the sources know, in order of trust, prices above the query's limit included; None
            asks the shipped snapshot alone.

    Raises:
        InputError: an argument of another kind, or a time without a zone.
        UnknownGpuError: the query names a GPU that does not exist.
        StaleCatalogError: a matching price is older than ``max_age_s``.
        CatalogError: a price file is missing or broken.
    """
    check_kind("query", query, OfferQuery, 'such as OfferQuery(gpus=("L4",))')
    check_kind("now", now, datetime, "datetime.now(UTC) will do")
    if now.tzinfo is None:
        raise InputError("now has no time zone, and ages would be wrong: datetime.now(UTC) has one.")
    if max_age_s is not None:
        check_number("max_age_s", max_age_s, least=0)
    check_number("fresh_s", fresh_s, least=0)
    query, families = _resolve_gpus(query)
    if answers is None:
        answers = [answer_of(SnapshotSource(), query)]
    check_each("answers", answers, Answer, "answer_of(source, query) makes one")
    matching = [
        dataclasses.replace(answer, offers=tuple(filter(query.matches, answer.offers)))
        for answer in merged(answers)
    ]
    oldest = None if max_age_s is None else now - timedelta(seconds=min(max_age_s, now.timestamp()))
    kept, old = with_stand_ins(matching, oldest)
    offers = tuple(offer for answer in kept for offer in answer.offers)
    if max_age_s is not None:
        _refuse_stale(offers, now, max_age_s)
    dated = [
        offer
        for answer in kept
        for offer in answer.offers
        if not answer.is_live or _age_s(offer, now) > fresh_s
    ]
    doubts = [warning for answer in answers for warning in answer.warnings]
    return Offers(offers=offers, warnings=(*families, *_warnings(offers, dated, now), *old, *doubts))


def answer_of(source: PriceSource, query: OfferQuery) -> Answer:
    """What a source that is not live knows of a query, whatever the price.

    Raises:
        CatalogError: its data cannot be read.
    """
    parts = source.offers(dataclasses.replace(query, max_usd_per_h=None))
    offers = tuple(offer for part in parts for offer in part.offers)
    return Answer(source=source.name, is_live=False, offers=offers, providers=providers_of(source))


def providers_of(source: PriceSource) -> tuple[str, ...]:
    """Of whom a source may know prices."""
    return source.capabilities.providers or tuple(one.provider for one in source.freshness())


def _resolve_gpus(query: OfferQuery) -> tuple[OfferQuery, list[Finding]]:
    """The query with catalog names, and which families were widened."""
    names: dict[str, None] = {}
    families = []
    for text in query.gpus:
        members = [gpu.name for gpu in resolve_gpus(text)]
        names |= dict.fromkeys(members)
        if len(members) > 1:
            families.append(finding(Code.GPU_FAMILY, name=text, gpus=members))
    return dataclasses.replace(query, gpus=tuple(names)), families


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
        return [finding(Code.NO_PRICE_MATCHES)]
    warnings = []
    if dated:
        ages = freshness_of(dated)
        warnings.append(
            finding(
                Code.PRICES_NOT_LIVE,
                num_dated=len(dated),
                num_prices=len(offers),
                ages=[_age_facts(one, now) for one in ages],
                is_public=any(one.provider in load_renters() and _age_days(one.newest, now) for one in ages),
            )
        )
    # A date of today may lie ahead of UTC by this much.
    latest = now + timedelta(hours=14)
    ahead = sorted(f.provider for f in freshness_of(offers) if f.newest > latest)
    if ahead:
        warnings.append(finding(Code.PRICES_AHEAD, providers=ahead))
    num_derived = sum(offer.source.startswith(DERIVED) for offer in offers)
    if num_derived:
        warnings.append(
            finding(
                Code.PRICES_COMPUTED, num_computed=num_derived, num_prices=len(offers), source_begins=DERIVED
            )
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
    return "; ".join(
        f"{f.provider} {_days(f, now)} old ({_span(str(f.oldest.date()), str(f.newest.date()))})"
        for f in freshness
    )


def _days(freshness: Freshness, now: datetime) -> str:
    newest, oldest = (_age_days(moment, now) for moment in (freshness.newest, freshness.oldest))
    return f"{_span(str(newest), str(oldest))} days"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
