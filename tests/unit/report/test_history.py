"""Histories of prices as a table, wide and narrow."""

from datetime import UTC, datetime
from typing import Any

from advisor.core.values import Market, PricePoint
from advisor.pricing.price_history import PriceSeries, series_of
from advisor.report.prices import history_document
from tests.unit.report.printed import on_screen, rows_of

UNTIL = datetime(2026, 11, 21, tzinfo=UTC)


def point(day: int, usd_per_h: float, **changes: Any) -> PricePoint:
    facts = {
        "provider": "gcp", "instance_type": "n1-standard-16+4xV100", "region": "northamerica-northeast1",
        "zone": None, "market": Market.ON_DEMAND, "source": "gcp",
    }  # fmt: skip
    return PricePoint(
        usd_per_h=usd_per_h, observed_at=datetime(2026, 11, day, tzinfo=UTC), **(facts | changes)
    )


SERIES: tuple[PriceSeries, ...] = series_of(
    [point(1, 11.2), point(11, 12.32), point(3, 130.5, source="gpuhunt", market=Market.SPOT)]
)


def printed(width: int) -> list[str]:
    return [line.rstrip() for line in on_screen(history_document(SERIES, UNTIL), width).splitlines()]


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
    assert [row["Machine"] for row in rows_of(history_document(SERIES, UNTIL))] == [
        "gcp n1-standard-16+4xV100"
    ] * 2
