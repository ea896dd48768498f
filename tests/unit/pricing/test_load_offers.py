"""Offers of all sources: names widened aloud, ages told, stale prices refused on demand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from advisor.errors import StaleCatalogError, UnknownGpuError
from advisor.pricing import DERIVED, Freshness, OfferQuery, PriceSource, load_offers
from advisor.pricing.snapshot import freshness_of
from advisor.types import Market, Offer
from advisor.units import DAY_S

TODAY = date(2026, 11, 21)


def offer(*, gpu: str = "L4", age_days: int = 100, source: str = "test", **changes: str) -> Offer:
    values = {"provider": "aws", "region": "us-east-1"} | changes
    return Offer(
        instance_type="x",
        zone=None,
        gpu=gpu,
        num_gpus=1,
        market=Market.ON_DEMAND,
        list_usd_per_h=1.0,
        retrieved_at=date.fromordinal(TODAY.toordinal() - age_days),
        source=source,
        **values,
    )


class FixedSource:
    """A price source of given offers."""

    name = "fixed"

    def __init__(self, *offers: Offer) -> None:
        self._offers = offers

    def offers(self, query: OfferQuery) -> Sequence[Offer]:
        return tuple(filter(query.matches, self._offers))

    def freshness(self) -> Sequence[Freshness]:
        return freshness_of(self._offers)


def test_offers_of_all_sources_are_joined() -> None:
    sources: list[PriceSource] = [FixedSource(offer()), FixedSource(offer(provider="gcp"))]
    found = load_offers(OfferQuery(), today=TODAY, sources=sources)
    assert [o.provider for o in found.offers] == ["aws", "gcp"]


def test_the_age_of_prices_is_told_by_provider() -> None:
    source = FixedSource(offer(age_days=124), offer(age_days=511), offer(provider="gcp"))
    found = load_offers(OfferQuery(), today=TODAY, sources=[source])
    (warning,) = found.warnings
    assert warning == (
        "prices are not live: aws 124 to 511 days old (2025-06-28 to 2026-07-20);"
        " gcp 100 days old (2026-08-13)"
    )


def test_a_family_is_widened_aloud_and_an_alias_silently() -> None:
    source = FixedSource(offer(gpu="A100-SXM-80GB"), offer(gpu="T4"), offer())
    query = OfferQuery(gpus=("A100-80GB", "Tesla T4"))
    found = load_offers(query, today=TODAY, sources=[source])
    assert [o.gpu for o in found.offers] == ["A100-SXM-80GB", "T4"]
    assert found.warnings[0] == ("A100-80GB is a family: taken as A100-PCIE-80GB, A100-SXM-80GB")


def test_an_unknown_gpu_is_an_error_not_an_empty_answer() -> None:
    with pytest.raises(UnknownGpuError, match="'A101'"):
        load_offers(OfferQuery(gpus=("A101",)), today=TODAY, sources=[FixedSource(offer())])


def test_nothing_that_matches_is_said() -> None:
    query = OfferQuery(regions=("mars-*",))
    found = load_offers(query, today=TODAY, sources=[FixedSource(offer())])
    assert found.offers == ()
    assert found.warnings == ("no price in the catalog matches these limits: see `advisor prices`",)


def test_computed_prices_are_counted() -> None:
    source = FixedSource(offer(), offer(source=f"{DERIVED} savings"))
    found = load_offers(OfferQuery(), today=TODAY, sources=[source])
    assert "1 of 2 prices were never quoted but computed from others" in found.warnings[1]


def test_prices_from_the_future_blame_the_clock() -> None:
    found = load_offers(OfferQuery(), today=TODAY, sources=[FixedSource(offer(age_days=-3))])
    assert "prices of aws are dated after today: check the clock" in found.warnings


def test_an_explicit_age_limit_makes_old_prices_an_error() -> None:
    source = FixedSource(offer(age_days=5), offer(age_days=40, provider="gcp"))
    with pytest.raises(StaleCatalogError) as caught:
        load_offers(OfferQuery(), today=TODAY, max_age_s=30 * DAY_S, sources=[source])
    message = str(caught.value)
    assert message.startswith("1 of 2 prices are older than 30 d: gcp 40 days old (2026-10-12)")
    assert "--max-age" in message


def test_only_prices_that_match_must_be_young_enough() -> None:
    source = FixedSource(offer(age_days=5), offer(age_days=40, provider="gcp"))
    query = OfferQuery(providers=("aws",))
    found = load_offers(query, today=TODAY, max_age_s=5 * DAY_S, sources=[source])
    assert len(found.offers) == 1
