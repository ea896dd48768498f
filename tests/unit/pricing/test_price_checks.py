"""Bounds of prices, and changes that look wrong."""

import itertools
import math
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.units import HOURS_PER_MONTH
from advisor.core.values import Interval, Market, PricePoint
from advisor.pricing.instance_types import load_instances, read_as
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
from advisor.pricing.price_history import seen_from, series_of, spot_quantiles
from advisor.pricing.refresh import checked
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from advisor.pricing.spot_odds import (
    SPOT_ODDS_FILE,
    START_ODDS_FILE,
    Age,
    Basis,
    Size,
    SpotOdds,
    StartOdds,
    class_of,
    load_interruptions,
    preemptions_per_h,
    spot_odds,
    start_odds,
)
from tests.builders import make_offer
from tests.shared import SHARED, needs_shared
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


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def quote_at(
    days_ago: float, usd_per_h: float = 1.0, source: str = "aws", zone: str | None = "a"
) -> PricePoint:
    return PricePoint(
        provider="aws", instance_type="x", region="us-east-1", zone=zone, market=Market.SPOT,
        usd_per_h=usd_per_h, observed_at=NOON - timedelta(days=days_ago), source=source,
    )  # fmt: skip


quotes = st.lists(
    st.builds(
        quote_at,
        st.integers(0, 9),
        st.sampled_from((1.0, 2.0)),
        st.sampled_from("ab"),
        st.none() | st.just("z"),
    ),
    max_size=12,
)


@given(quotes)
def test_every_point_is_in_one_series_of_its_own_source(histories):
    series = series_of(histories)
    assert sorted(map(repr, histories)) == sorted(repr(p) for one in series for p in one.points)
    for one in series:
        assert {(p.source, p.zone) for p in one.points} == {(one.source, one.zone)}
        assert list(one.points) == sorted(one.points, key=lambda p: p.observed_at)
    assert len({(one.source, one.zone) for one in series}) == len(series)


@given(quotes)
def test_a_window_moves_only_what_began_before_it(histories):
    start = NOON - timedelta(days=5)
    for before, after in zip(histories, seen_from(histories, start), strict=True):
        assert after.observed_at == max(before.observed_at, start)
        assert (after.usd_per_h, after.source) == (before.usd_per_h, before.source)


def test_the_median_of_a_window_counts_what_was_in_force_from_its_beginning_on():
    """1.0 for 300 days, 2.0 for the last 60: of 90 days, 2.0 held the most."""
    (series,) = series_of(seen_from([quote_at(360, 1.0), quote_at(60, 2.0)], NOON - timedelta(days=90)))
    assert series.median_usd_per_h(NOON) == 2.0
    assert series.points[0].observed_at == NOON - timedelta(days=90)


FIRST_DAY = datetime(2026, 8, 1, tzinfo=UTC)
WINDOW_MIN = 300
END = FIRST_DAY + timedelta(minutes=WINDOW_MIN)

# Minutes from the start, some before it and some after the end; cents, so that prices repeat.
changes = st.dictionaries(
    st.integers(-100, WINDOW_MIN + 50), st.integers(1, 30).map(lambda cents: cents / 100), max_size=12
)


def points_of(prices: dict[int, float]) -> list[PricePoint]:
    return [
        PricePoint(
            provider="aws",
            instance_type="g6.xlarge",
            region="us-east-1",
            zone="use1-az1",
            market=Market.SPOT,
            usd_per_h=usd_per_h,
            observed_at=FIRST_DAY + timedelta(minutes=minute),
        )
        for minute, usd_per_h in prices.items()
    ]


def quantiles(prices: dict[int, float]) -> Interval | None:
    return spot_quantiles(points_of(prices), start=FIRST_DAY, end=END)


def counted(prices: dict[int, float]) -> Interval | None:
    """The definition taken literally: the price of each minute, sorted."""
    held = []
    for minute in range(WINDOW_MIN):
        before = [moment for moment in prices if moment <= minute]
        if before:
            held.append(prices[max(before)])
    if not held:
        return None
    held.sort()
    # The k-th of n minutes is the lowest price at or below which k/n of the time was spent.
    p10, p50, p90 = (held[-(-percent * len(held) // 100) - 1] for percent in (10, 50, 90))
    return Interval(p10=p10, p50=p50, p90=p90)


@given(changes)
def test_it_is_what_counting_minutes_gives(prices):
    assert quantiles(prices) == counted(prices)


@given(changes, st.randoms())
def test_the_order_of_the_points_does_not_matter(prices, random):
    quotes = points_of(prices)
    random.shuffle(quotes)  # type: ignore[attr-defined]
    assert spot_quantiles(quotes, start=FIRST_DAY, end=END) == quantiles(prices)


@given(changes, st.integers(-10, WINDOW_MIN + 5))
def test_saying_a_price_again_changes_nothing(prices, minute):
    before = [moment for moment in prices if moment <= minute]
    again = {minute: prices[max(before)]} if before else {}
    assert quantiles(again | prices) == quantiles(prices)


@given(changes, st.sampled_from((2.0, 0.5, 1024.0)))
def test_prices_in_another_unit_give_quantiles_in_that_unit(prices, factor):
    plain = quantiles(prices)
    scaled = quantiles({minute: usd * factor for minute, usd in prices.items()})
    if plain is None:
        assert scaled is None
    else:
        assert scaled == Interval(p10=plain.p10 * factor, p50=plain.p50 * factor, p90=plain.p90 * factor)


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        # Five dear quotes within ten minutes, then four hours at the low price.
        ({0: 5.0, 2: 6.0, 4: 7.0, 6: 8.0, 8: 9.0, 10: 1.0}, Interval(p10=1.0, p50=1.0, p90=1.0)),
        # The price at the start is the last one before it.
        ({-90: 9.0, -30: 1.0, 150: 2.0}, Interval(p10=1.0, p50=1.0, p90=2.0)),
        ({}, None),
        ({WINDOW_MIN: 1.0, WINDOW_MIN + 7: 2.0}, None),
    ],
)
def test_a_price_weighs_as_long_as_it_held_in_the_window(prices, expected):
    assert quantiles(prices) == expected


ROOT = Path(__file__).resolve().parents[3]
BUCKETS = {(0, 5), (5, 10), (10, 15), (15, 20), (20, 100)}


@given(st.floats(0, 99.9))
def test_the_rate_takes_the_share_back_within_a_month(monthly_pct):
    survived = math.exp(-preemptions_per_h(monthly_pct) * HOURS_PER_MONTH)
    assert 100 * (1 - survived) == pytest.approx(monthly_pct, abs=1e-9)


def test_known_rates():
    assert preemptions_per_h(0) == 0
    assert preemptions_per_h(5) == pytest.approx(7.03e-5, rel=1e-3)
    assert preemptions_per_h(20) == pytest.approx(3.057e-4, rel=1e-3)


@pytest.mark.parametrize("pct", [100, -1, math.nan])
def test_a_share_without_a_rate_is_refused(pct):
    with pytest.raises(ValueError, match="from 0 to below 100"):
        preemptions_per_h(pct)


def test_the_shipped_table_is_of_known_types_and_buckets():
    known = {name for provider, name in load_instances() if provider == "aws"}
    table = load_interruptions()
    assert len(table) > 600
    for (instance_type, region), bucket in table.items():
        assert instance_type in known
        assert (bucket.low_pct, bucket.high_pct) in BUCKETS
        assert re.fullmatch(r"[a-z]+-[a-z]+-\d", region)
        assert bucket.as_of == date(2025, 6, 28)
        assert bucket.least_preemptions_per_h == preemptions_per_h(bucket.low_pct)


@needs_shared
@pytest.mark.shared
def test_the_build_reproduces_the_committed_file(tmp_path):
    script = ROOT / "tools" / "build_interruptions.py"
    command = [sys.executable, str(script), "--shared", str(SHARED), "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (tmp_path / "interruptions.csv").read_bytes() == catalog_path("interruptions.csv").read_bytes()
    assert "as of 2025-06-28" in run.stdout


OLD, NEW = "V100-SXM-16GB", "B200-SXM-180GB"


def test_every_class_has_odds_with_source_and_date():
    table = read_as(catalog_path(SPOT_ODDS_FILE), SpotOdds)
    assert {(odds.size, odds.age) for odds in table} == set(itertools.product(Size, Age))
    for odds in table:
        assert "Stanford" in odds.source
        assert odds.as_of <= date(2026, 11, 22)


def test_every_market_has_a_wait_by_class():
    table = read_as(catalog_path(START_ODDS_FILE), StartOdds)
    wanted = set(itertools.product((Market.SPOT, Market.ON_DEMAND), Size, Age))
    assert {(odds.market, odds.size, odds.age) for odds in table} == wanted


@pytest.mark.parametrize(
    ("gpu", "year", "age"),
    [(OLD, 2026, Age.KNOWN), (OLD, 2018, Age.NEW), (NEW, 2026, Age.NEW), ("of tomorrow", 2026, Age.NEW)],
)
def test_what_is_newer_than_any_trace_or_unknown_counts_as_new(gpu, year, age):
    assert class_of(gpu, 1, date(year, 1, 1)) == (Size.ONE, age)
    assert class_of(gpu, 8, date(year, 1, 1)) == (Size.SEVERAL, age)


def test_a_gpu_is_new_for_three_years():
    released = load_gpus()[OLD].released
    ages = [class_of(OLD, 1, released + timedelta(days=days))[1] for days in (3 * 365 - 1, 3 * 365)]
    assert ages == [Age.NEW, Age.KNOWN]


def test_newer_and_larger_machines_go_away_no_less_and_come_back_no_sooner():
    for num_gpus in (1, 8):
        old, new = spot_odds(OLD, num_gpus), spot_odds(NEW, num_gpus)
        assert new.preemptions_per_h > old.preemptions_per_h
        assert new.outage_h > old.outage_h
    for gpu in (OLD, NEW):
        assert spot_odds(gpu, 8).outage_h > spot_odds(gpu, 1).outage_h


@pytest.mark.parametrize("market", [Market.SPOT, Market.ON_DEMAND])
def test_newer_and_larger_machines_wait_longer(market):
    for num_gpus in (1, 8):
        old, new = (start_odds(gpu, num_gpus, market).wait_s for gpu in (OLD, NEW))
        assert new.p_at_once < old.p_at_once
        assert new.p90 > old.p90
    for gpu in (OLD, NEW):
        assert start_odds(gpu, 8, market).wait_s.p_at_once < start_odds(gpu, 1, market).wait_s.p_at_once


@pytest.mark.parametrize(("gpu", "num_gpus"), list(itertools.product((OLD, NEW), (1, 8))))
def test_spot_waits_longer_than_on_demand_which_is_judged(gpu, num_gpus):
    spot, rented = (start_odds(gpu, num_gpus, market) for market in (Market.SPOT, Market.ON_DEMAND))
    assert spot.wait_s.p90 > rented.wait_s.p90
    assert rented.basis is Basis.JUDGED


@pytest.mark.parametrize("market", Market)
def test_no_rented_machine_is_there_in_no_time(market):
    wait = start_odds(OLD, 1, market).wait_s
    assert 0 < wait.p50 <= wait.p90


def test_what_is_left_over_waits_like_spot_and_what_is_sold_like_on_demand():
    assert start_odds(NEW, 8, Market.FLEX_START) == start_odds(NEW, 8, Market.SPOT)
    for market in (Market.RESERVED, Market.CAPACITY_BLOCK, Market.COMMIT_1Y):
        assert start_odds(NEW, 8, market) == start_odds(NEW, 8, Market.ON_DEMAND)
