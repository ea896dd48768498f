"""Bounds of prices, and changes that look wrong."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path
from advisor.core.values import Interval, Market, PricePoint
from advisor.pricing.price_checks import (
    ANY_GPU,
    BOUNDS_FILE,
    JUMP,
    Doubt,
    doubtful_prices,
    has_possible_prices,
    is_possible,
    load_bounds,
    possible_points,
)
from advisor.pricing.refresh import checked
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from tests.builders import make_offer
from tests.unit.pricing.test_source_registry import part, point
from tools import build_price_bounds

SHIPPED = [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]


def test_every_shipped_price_is_possible():
    assert len(SHIPPED) == 3108
    assert not [offer for offer in SHIPPED if not has_possible_prices(offer)]


def test_the_file_is_what_the_tool_makes_of_the_shipped_prices(tmp_path):
    assert build_price_bounds.main(["--out", str(tmp_path)]) == 0
    assert (tmp_path / BOUNDS_FILE).read_bytes() == catalog_path(BOUNDS_FILE).read_bytes()


@pytest.mark.parametrize("gpu", [*load_bounds(), "aws B400"])
@pytest.mark.parametrize("num_gpus", [1, 8])
def test_bounds_are_of_one_gpu(gpu, num_gpus):
    bounds = load_bounds().get(gpu, load_bounds()[ANY_GPU])
    low, high = num_gpus * bounds.lowest_usd_per_gpu_h, num_gpus * bounds.highest_usd_per_gpu_h
    assert is_possible(low, gpu, num_gpus)
    assert is_possible(high, gpu, num_gpus)
    for usd in (0.0, -1.0, 1e-9, 1e-5, low * 0.99, high * 1.01, 1e9, math.inf, -math.inf, math.nan):
        assert not is_possible(usd, gpu, num_gpus)


@pytest.mark.parametrize(
    "changes",
    [
        {"list_usd_per_h": 1e-9},
        {"contracted_usd_per_h": 1e9},
        {"effective_usd_per_h": 1e-9},
        {"spot_usd_per_h": Interval(p10=1e-9, p50=0.2, p90=0.3)},
    ],
)
def test_a_plug_ins_impossible_price_is_a_gap(changes):
    sound, wrong = make_offer("L4"), replace(make_offer("L4", instance_type="odd"), **changes)  # type: ignore[arg-type]
    known = checked(part(sound, wrong))
    assert (known.offers, known.unpriced) == ((sound,), ("odd",))
    (gap,) = known.gaps
    assert gap.startswith("prices that no such machine can have left out: odd us-east-1 on-demand")
    assert known.troubles == known.gaps


def test_earlier_prices_are_judged_by_their_machine():
    """p5.48xlarge has eight H100; of a machine that nobody knows any number of GPUs is believed."""
    offer = make_offer("L4", instance_type="mine")
    points = [
        point(instance_type=name, usd_per_h=usd)
        for name in ("mine", "p5.48xlarge", "nobody's")
        for usd in (1e-5, 0.5, 60.0, 1e9)
    ]
    kept = {(p.instance_type, p.usd_per_h) for p in possible_points(points, (offer,))}
    assert kept == {("mine", 0.5), ("p5.48xlarge", 60.0), ("nobody's", 0.5), ("nobody's", 60.0)}
    known = checked(part(offer, history=tuple(points)))
    assert len(known.history) == 4
    assert known.gaps == ("8 earlier prices that no such machine can have had left out",)


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


def test_nothing_is_said_of_what_is_right():
    offers = [make_offer(usd_per_h=3.0), make_offer(usd_per_h=1.0, market=Market.SPOT)]
    assert doubts(offers, offers, points(1.0, 1.1, 1.2)) == []


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_only_changes_beyond_the_limit_are_jumps(old, new):
    doubted = doubts(history=points(old, new))
    assert doubted == ([Doubt.JUMP] if abs(new / old - 1) > JUMP else [])


@pytest.mark.parametrize(
    ("ratio", "words"), [(0.3, None), (0.12, "9 of 10 of its family"), (0.1, "the floor, where no one")]
)
def test_spot_far_below_its_family_is_suspicious(ratio, words):
    offers = [make_offer(usd_per_h=10.0), make_offer(usd_per_h=10.0 * ratio, market=Market.SPOT)]
    doubted = doubtful_prices(offers, (), ())
    assert [one.doubt for one in doubted] == ([] if words is None else [Doubt.SPOT_LOW])
    assert words is None or words in doubted[0].detail


def test_an_old_jump_is_forgotten_and_a_new_one_has_figures():
    assert doubts(history=points(1.0, 2.0, 2.1)) == []
    (finding,) = doubtful_prices((), (), points(2.0, 2.1, 1.0))
    assert finding.detail == "2.1000 -> 1.0000 USD/h (-52%), spot, 2026-11-02 to 2026-11-03"
    assert (finding.provider, finding.place, finding.instance_type) == ("aws", "use1-az1", "x")


def test_two_sources_that_differ_are_no_jump():
    other = [replace(point, source="other", usd_per_h=9.0) for point in points(1.0, 1.0)]
    assert doubts(history=sorted([*points(1.0, 1.1), *other], key=lambda point: point.observed_at)) == []
    assert doubts(history=[*points(1.0, 2.0), *other]) == [Doubt.JUMP]


def test_series_of_zones_and_markets_are_apart():
    history = points(1.0) + points(9.0, zone="use1-az2") + points(9.0, market=Market.ON_DEMAND, zone=None)
    assert doubts(history=history) == []


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan")])
def test_a_price_that_is_none_is_told(price):
    offer = replace(make_offer(usd_per_h=1.0), list_usd_per_h=price)
    assert doubts([offer]) == [Doubt.NO_PRICE]
    assert doubts(history=points(price)) == [Doubt.NO_PRICE]


def test_a_region_that_was_there_is_missed_once():
    here = make_offer(usd_per_h=1.0)
    gone = [replace(here, region="eu-west-1", instance_type=name) for name in ("a", "b")]
    (finding,) = doubtful_prices([here], [here, *gone], ())
    assert (finding.doubt, finding.place) == (Doubt.MISSING_REGION, "eu-west-1")
    assert finding.detail == f"no {here.market} price, 2 in the snapshot"


def test_a_provider_that_was_never_pulled_misses_no_region():
    other = replace(make_offer(usd_per_h=1.0), provider="gcp")
    assert doubts([make_offer(usd_per_h=1.0)], [make_offer(usd_per_h=1.0), other]) == []


def test_spot_above_on_demand_is_told_and_equal_is_not():
    listed = make_offer(usd_per_h=2.0)
    assert doubts([listed, replace(listed, market=Market.SPOT, list_usd_per_h=2.0)]) == []
    assert doubts([listed, replace(listed, market=Market.SPOT, list_usd_per_h=2.1)]) == [Doubt.SPOT_ABOVE]
    elsewhere = replace(listed, market=Market.SPOT, list_usd_per_h=2.1, region="mars-1")
    assert doubts([listed, elsewhere]) == []
