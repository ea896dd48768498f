"""Series of prices and their quantiles."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, Market, PricePoint
from advisor.pricing.price_history import seen_from, series_of, spot_quantiles

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def point(days_ago: float, usd_per_h: float = 1.0, source: str = "aws", zone: str | None = "a") -> PricePoint:
    return PricePoint(
        provider="aws", instance_type="x", region="us-east-1", zone=zone, market=Market.SPOT,
        usd_per_h=usd_per_h, observed_at=NOON - timedelta(days=days_ago), source=source,
    )  # fmt: skip


points = st.lists(
    st.builds(
        point, st.integers(0, 9), st.sampled_from((1.0, 2.0)), st.sampled_from("ab"), st.none() | st.just("z")
    ),
    max_size=12,
)


@given(points)
def test_every_point_is_in_one_series_of_its_own_source(histories):
    series = series_of(histories)
    assert sorted(map(repr, histories)) == sorted(repr(p) for one in series for p in one.points)
    for one in series:
        assert {(p.source, p.zone) for p in one.points} == {(one.source, one.zone)}
        assert list(one.points) == sorted(one.points, key=lambda p: p.observed_at)
    assert len({(one.source, one.zone) for one in series}) == len(series)


@given(points)
def test_a_window_moves_only_what_began_before_it(histories):
    start = NOON - timedelta(days=5)
    for before, after in zip(histories, seen_from(histories, start), strict=True):
        assert after.observed_at == max(before.observed_at, start)
        assert (after.usd_per_h, after.source) == (before.usd_per_h, before.source)


def test_the_median_of_a_window_counts_what_was_in_force_from_its_beginning_on():
    """1.0 for 300 days, 2.0 for the last 60: of 90 days, 2.0 held the most."""
    (series,) = series_of(seen_from([point(360, 1.0), point(60, 2.0)], NOON - timedelta(days=90)))
    assert series.median_usd_per_h(NOON) == 2.0
    assert series.points[0].observed_at == NOON - timedelta(days=90)


START = datetime(2026, 8, 1, tzinfo=UTC)
WINDOW_MIN = 300
END = START + timedelta(minutes=WINDOW_MIN)

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
            observed_at=START + timedelta(minutes=minute),
        )
        for minute, usd_per_h in prices.items()
    ]


def quantiles(prices: dict[int, float]) -> Interval | None:
    return spot_quantiles(points_of(prices), start=START, end=END)


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
    points = points_of(prices)
    random.shuffle(points)  # type: ignore[attr-defined]
    assert spot_quantiles(points, start=START, end=END) == quantiles(prices)


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
