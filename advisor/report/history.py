"""The history of prices as a table, a chart, and JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from advisor.pricing.price_history import Series
from advisor.report.cells import DAY, PLAIN, USD_PER_H, Cell
from advisor.report.document import Axis, Chart, Column, Document, Lines, Row, Table, columns
from advisor.report.document import Series as Curve
from advisor.report.price_bands import places_chart

COLUMNS = (
    *columns("Machine", "Place", "Market", "Source", "Since", wraps=False),
    Column("Changes", PLAIN, wraps=False),
    *columns("First", "Last", "Lowest", "Median", "Highest", kind=USD_PER_H, wraps=False),
)
# Two lines a row: side by side, a machine, its place and seven figures take 130 columns.
NARROW_COLUMNS = (
    Column("Machine,\nplace"),
    Column("Since,\nchanges", PLAIN, wraps=False),
    *columns("First,\nlast", "Lowest,\nhighest", "Median", kind=USD_PER_H, wraps=False),
)
MOST_CURVES = 8


def history_document(series: Sequence[Series], until: datetime, *, plot: bool = False) -> Document:
    """One row a machine, place and source, prices in USD/h; the facts hold every point.

    Args:
        series: of any machines.
        until: when the last price of each ends.
        plot: curves instead of the table.
    """
    blocks = _curves(series, until) if plot else (_table(series, until),)
    return Document(
        facts={"series": [_json(one, until) for one in series], "warnings": []},
        blocks=blocks,
        title="How prices changed",
        page=lambda: (*places_chart(series, until), _table(series, until)),
    )


def _table(series: Sequence[Series], until: datetime) -> Table:
    narrow = Table(columns=NARROW_COLUMNS, rows=tuple(Row(_narrow(one, until)) for one in series))
    return Table(columns=COLUMNS, rows=tuple(Row(_wide(one, until)) for one in series), narrow=(narrow,))


def _curves(series: Sequence[Series], until: datetime) -> tuple[Chart | Lines, ...]:
    """The machines that are cheapest now, the cheapest first."""
    cheapest = sorted(series, key=lambda one: one.points[-1].usd_per_h)[:MOST_CURVES]
    chart = Chart(
        x=Axis(DAY), y=Axis(USD_PER_H), series=tuple(map(_curve, cheapest)), until=until.timestamp()
    )
    num_left = len(series) - len(cheapest)
    if not num_left:
        return (chart,)
    return chart, Lines(
        (f"{num_left} dearer series are not drawn: --region, --market or --gpu narrow them.",)
    )


def _curve(one: Series) -> Curve:
    points = ((point.observed_at.timestamp(), point.usd_per_h) for point in one.points)
    return Curve(_name(one), tuple(points))


def _name(one: Series) -> str:
    usd_per_h = f"{one.points[-1].usd_per_h:.4f} USD/h"
    return f"{_machine(one)} {_place(one)} {one.market}, now {usd_per_h} ({one.source})"


def _machine(one: Series) -> str:
    return f"{one.provider} {one.instance_type}"


def _place(one: Series) -> str:
    return one.zone or one.region


def _wide(one: Series, until: datetime) -> tuple[Cell, ...]:
    first, last = one.points[0], one.points[-1]
    names = _machine(one), _place(one), one.market, one.source
    prices = one.lowest_usd_per_h, one.median_usd_per_h(until), one.highest_usd_per_h
    return *names, first.observed_at, len(one.points) - 1, first.usd_per_h, last.usd_per_h, *prices


def _narrow(one: Series, until: datetime) -> tuple[Cell, ...]:
    first, last = one.points[0], one.points[-1]
    source = "" if one.source == one.provider else f" ({one.source})"
    return (
        (f"{_machine(one)}{source}", f"{_place(one)} {one.market}"),
        (first.observed_at, len(one.points) - 1),
        (first.usd_per_h, last.usd_per_h),
        (one.lowest_usd_per_h, one.highest_usd_per_h),
        one.median_usd_per_h(until),
    )


def _json(one: Series, until: datetime) -> dict[str, object]:
    return {
        "provider": one.provider,
        "instance_type": one.instance_type,
        "region": one.region,
        "zone": one.zone,
        "market": one.market,
        "source": one.source,
        "lowest_usd_per_h": one.lowest_usd_per_h,
        "median_usd_per_h": one.median_usd_per_h(until),
        "highest_usd_per_h": one.highest_usd_per_h,
        "points": [
            {"observed_at": point.observed_at.isoformat(), "usd_per_h": point.usd_per_h}
            for point in one.points
        ],
    }
