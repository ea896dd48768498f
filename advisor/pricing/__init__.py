"""Prices: sources -> offers that match a query, each with its date and where it comes from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from advisor.errors import StaleCatalogError
from advisor.gpus import resolve_gpus
from advisor.pricing.query import OfferQuery
from advisor.pricing.snapshot import Freshness, SnapshotSource, freshness_of
from advisor.types import Offer
from advisor.units import DAY_S, format_duration

__all__ = ["DERIVED", "Freshness", "OfferQuery", "Offers", "PriceSource", "load_offers"]

DERIVED = "derived from"
"""How the source of a price begins that was computed from others and never quoted."""


class PriceSource(Protocol):
    """A place prices come from."""

    @property
    def name(self) -> str:
        """What ``advisor prices sources`` calls it."""
        ...

    def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Offers that match the query."""
        ...

    def freshness(self) -> Sequence[Freshness]:
        """How old the prices are, by provider."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Offers that match a query, and what a person should know about them."""

    offers: tuple[Offer, ...]
    warnings: tuple[str, ...]


def load_offers(
    query: OfferQuery,
    *,
    today: date,
    max_age_s: float | None = None,
    sources: Sequence[PriceSource] | None = None,
) -> Offers:
    """Offers of all sources that match, with a warning that tells how old the prices are.

    Args:
        query: what is wanted; its ``gpus`` may also be aliases and families.
        today: for the age of the prices.
        max_age_s: greatest age in seconds; None takes any age.
        sources: where to look; None for the shipped snapshot.

    Raises:
        UnknownGpuError: the query names a GPU that does not exist.
        StaleCatalogError: a matching price is older than ``max_age_s``.
        CatalogError: a price file is missing or broken.
    """
    query, said_aloud = _resolve_gpus(query)
    found = tuple(
        offer
        for source in (sources if sources is not None else (SnapshotSource(),))
        for offer in source.offers(query)
    )
    if max_age_s is not None:
        _refuse_stale(found, today, max_age_s)
    return Offers(offers=found, warnings=(*said_aloud, *_warnings(found, today)))


def _resolve_gpus(query: OfferQuery) -> tuple[OfferQuery, list[str]]:
    """The query with catalog names, and which families were widened."""
    names: dict[str, None] = {}
    said_aloud = []
    for text in query.gpus:
        members = [gpu.name for gpu in resolve_gpus(text)]
        names |= dict.fromkeys(members)
        if len(members) > 1:
            said_aloud.append(f"{text} is a family: taken as {', '.join(members)}")
    return dataclasses.replace(query, gpus=tuple(names)), said_aloud


def _age_s(offer: Offer, today: date) -> float:
    return (today - offer.retrieved_at).days * DAY_S


def _refuse_stale(offers: Sequence[Offer], today: date, max_age_s: float) -> None:
    stale = [offer for offer in offers if _age_s(offer, today) > max_age_s]
    if stale:
        raise StaleCatalogError(
            f"{len(stale)} of {len(offers)} prices are older than {format_duration(max_age_s)}:"
            f" {_ages(freshness_of(stale), today)}. Allow a greater age with --max-age, or narrow"
            " the query by provider, region or market."
        )


def _warnings(offers: Sequence[Offer], today: date) -> list[str]:
    if not offers:
        return ["no price in the catalog matches these limits: see `advisor prices`"]
    freshness = freshness_of(offers)
    warnings = [f"prices are not live: {_ages(freshness, today)}"]
    ahead = sorted(f.provider for f in freshness if f.newest > today)
    if ahead:
        warnings.append(f"prices of {', '.join(ahead)} are dated after today: check the clock")
    num_derived = sum(offer.source.startswith(DERIVED) for offer in offers)
    if num_derived:
        warnings.append(
            f"{num_derived} of {len(offers)} prices were never quoted but computed from others;"
            f" their source begins with {DERIVED!r}"
        )
    return warnings


def _ages(freshness: Sequence[Freshness], today: date) -> str:
    """``"aws 124 to 511 days old (2025-06-28 to 2026-07-20)"`` for each provider."""
    return "; ".join(
        f"{f.provider} {_days(f, today)} old ({_span(str(f.oldest), str(f.newest))})" for f in freshness
    )


def _days(freshness: Freshness, today: date) -> str:
    newest, oldest = (today - freshness.newest).days, (today - freshness.oldest).days
    return f"{_span(str(newest), str(oldest))} days"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
