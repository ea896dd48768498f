"""Doubts about prices: each kind is found, and what is right is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, PricePoint
from advisor.pricing.price_checks import JUMP, Doubt, doubtful_prices
from tests.builders import make_offer

START = datetime(2026, 11, 1, tzinfo=UTC)


def points(*prices: float, zone: str | None = "use1-az1", market: Market = Market.SPOT) -> list[PricePoint]:
    return [
        PricePoint(
            provider="aws", instance_type="x", region="us-east-1", zone=zone, market=market,
            usd_per_h=usd, observed_at=START + timedelta(days=day),
        )
        for day, usd in enumerate(prices)
    ]  # fmt: skip


def doubts(offers=(), before=(), history=()) -> list[Doubt]:
    return [finding.doubt for finding in doubtful_prices(offers, before, history)]


def test_nothing_is_said_of_what_is_right() -> None:
    offers = [make_offer(usd_per_h=3.0), make_offer(usd_per_h=1.0, market=Market.SPOT)]
    assert doubts(offers, offers, points(1.0, 1.1, 1.2)) == []


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_only_changes_beyond_the_limit_are_jumps(old: float, new: float) -> None:
    doubted = doubts(history=points(old, new))
    assert doubted == ([Doubt.JUMP] if abs(new / old - 1) > JUMP else [])


@pytest.mark.parametrize(
    ("ratio", "words"), [(0.3, None), (0.12, "9 of 10 of its family"), (0.1, "the floor, where no one")]
)
def test_spot_far_below_its_family_is_suspicious(ratio: float, words: str | None) -> None:
    offers = [make_offer(usd_per_h=10.0), make_offer(usd_per_h=10.0 * ratio, market=Market.SPOT)]
    doubted = doubtful_prices(offers, (), ())
    assert [one.doubt for one in doubted] == ([] if words is None else [Doubt.SPOT_LOW])
    assert words is None or words in doubted[0].detail


def test_an_old_jump_is_forgotten_and_a_new_one_has_figures() -> None:
    assert doubts(history=points(1.0, 2.0, 2.1)) == []
    (finding,) = doubtful_prices((), (), points(2.0, 2.1, 1.0))
    assert finding.detail == "2.1000 -> 1.0000 USD/h (-52%), spot, 2026-11-02 to 2026-11-03"
    assert (finding.provider, finding.place, finding.instance_type) == ("aws", "use1-az1", "x")


def test_two_sources_that_differ_are_no_jump() -> None:
    other = [replace(point, source="other", usd_per_h=9.0) for point in points(1.0, 1.0)]
    assert doubts(history=sorted([*points(1.0, 1.1), *other], key=lambda point: point.observed_at)) == []
    assert doubts(history=[*points(1.0, 2.0), *other]) == [Doubt.JUMP]


def test_series_of_zones_and_markets_are_apart() -> None:
    history = points(1.0) + points(9.0, zone="use1-az2") + points(9.0, market=Market.ON_DEMAND, zone=None)
    assert doubts(history=history) == []


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan")])
def test_a_price_that_is_none_is_told(price: float) -> None:
    offer = replace(make_offer(usd_per_h=1.0), list_usd_per_h=price)
    assert doubts([offer]) == [Doubt.NO_PRICE]
    assert doubts(history=points(price)) == [Doubt.NO_PRICE]


def test_a_region_that_was_there_is_missed_once() -> None:
    here = make_offer(usd_per_h=1.0)
    gone = [replace(here, region="eu-west-1", instance_type=name) for name in ("a", "b")]
    (finding,) = doubtful_prices([here], [here, *gone], ())
    assert (finding.doubt, finding.place) == (Doubt.MISSING_REGION, "eu-west-1")
    assert finding.detail == f"no {here.market} price, 2 in the snapshot"


def test_a_provider_that_was_never_pulled_misses_no_region() -> None:
    other = replace(make_offer(usd_per_h=1.0), provider="gcp")
    assert doubts([make_offer(usd_per_h=1.0)], [make_offer(usd_per_h=1.0), other]) == []


def test_spot_above_on_demand_is_told_and_equal_is_not() -> None:
    listed = make_offer(usd_per_h=2.0)
    assert doubts([listed, replace(listed, market=Market.SPOT, list_usd_per_h=2.0)]) == []
    assert doubts([listed, replace(listed, market=Market.SPOT, list_usd_per_h=2.1)]) == [Doubt.SPOT_ABOVE]
    elsewhere = replace(listed, market=Market.SPOT, list_usd_per_h=2.1, region="mars-1")
    assert doubts([listed, elsewhere]) == []
