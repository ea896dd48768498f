"""Series of prices: sources apart, and windows that begin with the price in force."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, PricePoint
from advisor.pricing.price_history import seen_from, series_of

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
def test_every_point_is_in_one_series_of_its_own_source(histories: list[PricePoint]) -> None:
    series = series_of(histories)
    assert sorted(map(repr, histories)) == sorted(repr(p) for one in series for p in one.points)
    for one in series:
        assert {(p.source, p.zone) for p in one.points} == {(one.source, one.zone)}
        assert list(one.points) == sorted(one.points, key=lambda p: p.observed_at)
    assert len({(one.source, one.zone) for one in series}) == len(series)


@given(points)
def test_a_window_moves_only_what_began_before_it(histories: list[PricePoint]) -> None:
    start = NOON - timedelta(days=5)
    for before, after in zip(histories, seen_from(histories, start), strict=True):
        assert after.observed_at == max(before.observed_at, start)
        assert (after.usd_per_h, after.source) == (before.usd_per_h, before.source)


def test_the_median_of_a_window_counts_what_was_in_force_from_its_beginning_on() -> None:
    """1.0 for 300 days, 2.0 for the last 60: of 90 days, 2.0 held the most."""
    (series,) = series_of(seen_from([point(360, 1.0), point(60, 2.0)], NOON - timedelta(days=90)))
    assert series.median_usd_per_h(NOON) == 2.0
    assert series.points[0].observed_at == NOON - timedelta(days=90)
