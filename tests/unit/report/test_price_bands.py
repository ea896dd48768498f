"""Bands of prices: from the cheapest zone of a region to the dearest, as a slow look at every moment says."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, PricePoint
from advisor.pricing.price_history import PriceSeries, series_of
from advisor.report.document import Chart, Lines
from advisor.report.prices import MOST_BANDS, places_chart

START = datetime(2026, 11, 1, tzinfo=UTC)
UNTIL = START + timedelta(days=40)


def point(day: float, usd_per_h: float, zone: str | None = "a", **changes: object) -> PricePoint:
    facts = {
        "provider": "aws", "instance_type": "g6.xlarge", "region": "us-east-1", "zone": zone,
        "market": Market.SPOT, "source": "aws",
    }  # fmt: skip
    return PricePoint(usd_per_h=usd_per_h, observed_at=START + timedelta(days=day), **(facts | changes))


def chart_of(*points: PricePoint) -> Chart:
    chart, *_ = places_chart(series_of(points), UNTIL)
    assert isinstance(chart, Chart)
    return chart


def in_force(series: tuple[PriceSeries, ...], moment: datetime) -> list[float]:
    """The last price of each zone that had one by then."""
    known = [[p.usd_per_h for p in one.points if p.observed_at <= moment] for one in series]
    return [prices[-1] for prices in known if prices]


CHANGES = st.lists(
    st.tuples(st.integers(0, 30), st.floats(0.01, 100), st.sampled_from("abc")),
    min_size=1,
    max_size=25,
    unique_by=lambda change: (change[0], change[2]),
)


@given(CHANGES)
def test_a_band_is_what_zones_ask_at_each_moment(changes):
    points = [point(*change) for change in changes]
    (curve,) = chart_of(*points).series
    series = series_of(points)
    moments = sorted({p.observed_at for p in points})
    assert [at for at, _ in curve.points] == [moment.timestamp() for moment in moments]
    for moment, (_, low), detail in zip(moments, curve.points, curve.details, strict=True):
        prices = in_force(series, moment)
        assert low == min(prices)
        assert detail.y_range == ((min(prices), max(prices)) if len(series) > 1 else None)


def test_a_band_says_what_it_is():
    (curve,) = chart_of(point(1, 0.5), point(2, 0.75, "b")).series
    assert curve.label == "aws g6.xlarge spot us-east-1, 2 zones (aws), now 0.5000 USD/h"
    assert curve.details[1].label == (
        "aws g6.xlarge spot us-east-1, 2 zones (aws)\n2026-11-03: 0.5000 .. 0.7500 USD/h"
    )


def test_one_zone_is_a_line_with_its_own_name():
    (curve,) = chart_of(point(1, 0.5, "us-east-1a")).series
    assert curve.label == "aws g6.xlarge spot us-east-1a (aws), now 0.5000 USD/h"
    assert curve.details[0].y_range is None


def test_markets_and_sources_are_apart_and_the_cheapest_comes_first():
    chart = chart_of(
        point(1, 2.0, None, market=Market.ON_DEMAND), point(1, 0.5), point(1, 0.25, source="gpuhunt")
    )
    assert [one.points[0][1] for one in chart.series] == [0.25, 0.5, 2.0]
    assert chart.until == UNTIL.timestamp()


def test_what_is_not_drawn_is_counted():
    points = [point(1, float(i + 1), instance_type=f"m{i}") for i in range(MOST_BANDS + 3)]
    chart, note = places_chart(series_of(points), UNTIL)
    assert isinstance(chart, Chart)
    assert isinstance(note, Lines)
    assert len(chart.series) == MOST_BANDS
    assert note.lines == ("3 dearer are not drawn: --region, --market or --gpu narrow them.",)


def test_no_history_has_no_chart():
    assert list(places_chart((), UNTIL)) == []
