"""Offers as rows and as JSON: the price of the machine, of one GPU, its date and source."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, PricePoint, QuoteKind, Tier
from advisor.pricing.price_history import PriceSeries, series_of
from advisor.report.document import Chart, Lines
from advisor.report.prices import (
    MOST_BANDS,
    history_document,
    offers_document,
    places_chart,
    price_json,
    quote_text,
    rent_text,
)
from tests.builders import make_offer, make_plan, make_price
from tests.findings import texts
from tests.unit.report.printed import json_of, on_screen, rows_of

OFFER = make_offer(
    "X",
    32.0,
    num_gpus=8,
    contracted_usd_per_h=20.0,
    market=Market.SPOT,
    zone="use1-az1",
    includes=("8 vCPU",),
)


def test_a_row_in_every_column():
    (row,) = rows_of(offers_document([OFFER], [make_price(20.0, 30.0)], []))
    # 20 dollars contracted (not 32) for 8 GPUs are 2.50 for one.
    assert list(row.values()) == [
        "aws x.xlarge",
        "use1-az1",
        "8 x X",
        "spot",
        "20.0000",
        "20.0000 (30.0000)",
        "2.5000",
        "dated, 30 d",
        "2026-11-01",
        "a test",
    ]


def test_without_a_zone_the_region_is_the_place():
    (row,) = rows_of(offers_document([make_offer()], [make_price()], []))
    assert (row["Zone"], row["Market"]) == ("us-east-1", "on-demand")


def test_json_tells_list_and_contracted_prices_apart():
    document = json_of(
        offers_document([OFFER, make_offer()], [make_price(20.0, 30.0), make_price()], texts("old prices"))
    )
    first, second = document["offers"]
    assert (first["usd_per_h"], first["list_usd_per_h"], first["contracted_usd_per_h"]) == (20, 32, 20)
    assert (second["usd_per_h"], second["list_usd_per_h"], second["contracted_usd_per_h"]) == (1, 1, None)
    assert (first["region"], first["zone"], second["zone"]) == ("us-east-1", "use1-az1", None)
    assert (first["market"], first["num_gpus"], first["includes"]) == ("spot", 8, ["8 vCPU"])
    assert (first["retrieved_at"], first["source"]) == ("2026-11-01T00:00:00+00:00", "a test")
    assert first["minimum_billed_s"] == 0
    assert first["price"] == {"p10": 20, "p50": 20, "p90": 30, "kind": "dated", "age_days": 30}
    assert document["warnings"] == ["old prices"]


def test_the_order_given_is_kept():
    assert [
        row["GPUs"]
        for row in rows_of(
            offers_document(
                [make_offer("B", 2.0), make_offer("A", 1.0), make_offer("C", 3.0)],
                [make_price(2.0), make_price(1.0), make_price(3.0)],
                [],
            )
        )
    ] == ["1 x B", "1 x A", "1 x C"]


def test_a_price_that_was_never_quoted_is_marked():
    guess = make_price(1.2, 2.0, QuoteKind.DERIVED, 512.4)
    (row,) = rows_of(offers_document([make_offer()], [guess], []))
    assert (row["USD/h"], row["Likely (p90)"]) == ("~1.0000", "1.2000 (2.0000)")
    assert row["Quote"] == "derived, 512 d"


@pytest.mark.parametrize(
    ("price", "words", "cell"),
    [
        (make_price(3.0, 4.0, QuoteKind.DATED, 111.4), "dated, 111 d", "3.00, 111 d"),
        (make_price(3.0, 3.0, QuoteKind.LIVE, 0.2), "live", "3.00, live"),
        (make_price(3.0, 3.0, QuoteKind.AGREED, 900.0), "agreed", "3.00, agreed"),
        (make_price(3.0, 4.0, QuoteKind.DERIVED, 512.4), "derived, 512 d", "~3.00, 512 d"),
        (make_price(3.0, 4.0, QuoteKind.FLOOR, 90.0), "floor, 90 d", "~3.00, 90 d"),
    ],
)
def test_words_of_a_price(price, words, cell):
    assert quote_text(price) == words
    assert rent_text(make_plan("X", 3.0, price=price)) == cell


def test_own_machines_have_a_rate_and_no_quote():
    assert rent_text(make_plan("X", 0.5, tier=Tier.CLUSTER)) == "0.50"
    assert rent_text(make_plan("X", None, tier=Tier.CLUSTER)) == ""
    assert price_json(None) is None


def test_json_of_a_price():
    assert price_json(make_price(3.0, 4.0, QuoteKind.DERIVED, 10.0)) == {
        "p10": 3.0, "p50": 3.0, "p90": 4.0, "kind": "derived", "age_days": 10.0,
    }  # fmt: skip


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


NOVEMBER = datetime(2026, 11, 21, tzinfo=UTC)


def change_on(day: int, usd_per_h: float, **changes: Any) -> PricePoint:
    facts = {
        "provider": "gcp", "instance_type": "n1-standard-16+4xV100", "region": "northamerica-northeast1",
        "zone": None, "market": Market.ON_DEMAND, "source": "gcp",
    }  # fmt: skip
    return PricePoint(
        usd_per_h=usd_per_h, observed_at=datetime(2026, 11, day, tzinfo=UTC), **(facts | changes)
    )


SERIES: tuple[PriceSeries, ...] = series_of(
    [change_on(1, 11.2), change_on(11, 12.32), change_on(3, 130.5, source="gpuhunt", market=Market.SPOT)]
)


def printed(width: int) -> list[str]:
    return [line.rstrip() for line in on_screen(history_document(SERIES, NOVEMBER), width).splitlines()]


def test_eighty_columns_break_no_word_and_leave_nothing_out():
    assert printed(80)[1:] == [
        " Machine,                                 Since,    First,   Lowest,",
        " place                                   changes      last   highest    Median",
        " " + "─" * 77,
        " gcp n1-standard-16+4xV100            2026-11-01   11.2000   11.2000   11.2000",
        " northamerica-northeast1 on-demand             1   12.3200   12.3200",
        " gcp n1-standard-16+4xV100 (gpuhunt)  2026-11-03  130.5000  130.5000  130.5000",
        " northamerica-northeast1 spot                  0  130.5000  130.5000",
        "",
    ]


def test_a_wide_terminal_has_a_line_a_series():
    lines = printed(160)
    assert len(lines) == 6
    assert lines[3].split() == [
        "gcp", "n1-standard-16+4xV100", "northamerica-northeast1", "on-demand", "gcp", "2026-11-01", "1",
        "11.2000", "12.3200", "11.2000", "11.2000", "12.3200",
    ]  # fmt: skip


def test_other_formats_do_not_depend_on_the_terminal():
    assert [row["Machine"] for row in rows_of(history_document(SERIES, NOVEMBER))] == [
        "gcp n1-standard-16+4xV100"
    ] * 2
