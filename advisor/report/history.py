"""The history of prices as a table, a plot in the terminal, and JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from advisor.pricing.refresh.price_history import Series
from advisor.report.plain import print_lines, print_text, stacked
from advisor.report.plot import draw, steps
from advisor.report.rows import Format, fits, print_rows, to_json

COLUMNS = (
    "Machine", "Place", "Market", "Source",
    "Since", "Changes", "First", "Last", "Lowest", "Median", "Highest",
)  # fmt: skip
RIGHT = frozenset(COLUMNS[5:])
# Two lines a row: side by side, a machine, its place and seven figures take 130 columns.
NARROW_COLUMNS = ("Machine,\nplace", "Since,\nchanges", "First,\nlast", "Lowest,\nhighest", "Median")
MOST_CURVES = 8
_COLUMNS = 200


def print_history(series: Sequence[Series], until: datetime, output: Format) -> None:
    """One row a machine, place and source, prices in USD/h; JSON holds every point."""
    if output is Format.JSON:
        print_text(to_json({"series": [_json(one, until) for one in series], "warnings": []}))
        return
    rows = [_row(one, until) for one in series]
    if output is not Format.TABLE or fits(COLUMNS, rows):
        print_rows(COLUMNS, rows, output, right=RIGHT)
        return
    narrow, right = [_narrow_row(one, until) for one in series], frozenset(NARROW_COLUMNS[1:])
    print_rows(NARROW_COLUMNS, narrow, output, right=right, wrapping=frozenset(NARROW_COLUMNS[:1]))


def plot_history(series: Sequence[Series], until: datetime) -> None:
    """The curves of the machines that are cheapest now, the cheapest first."""
    cheapest = sorted(series, key=lambda one: one.points[-1].usd_per_h)[:MOST_CURVES]
    curves = {
        _name(one): steps(
            [(point.observed_at.timestamp(), point.usd_per_h) for point in one.points],
            until.timestamp(),
            _COLUMNS,
        )
        for one in cheapest
    }
    print_text(draw(curves, x_text=_day, y_text=lambda usd: f"{usd:.4f}"))
    if len(series) > len(cheapest):
        num_left = len(series) - len(cheapest)
        print_lines(f"{num_left} dearer series are not drawn: --region, --market or --gpu narrow them.")


def _day(timestamp: float) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d}"


def _name(one: Series) -> str:
    usd_per_h = f"{one.points[-1].usd_per_h:.4f} USD/h"
    return f"{_machine(one)} {_place(one)} {one.market}, now {usd_per_h} ({one.source})"


def _machine(one: Series) -> str:
    return f"{one.provider} {one.instance_type}"


def _place(one: Series) -> str:
    return one.zone or one.region


def _row(one: Series, until: datetime) -> list[str]:
    prices = (
        one.points[0].usd_per_h,
        one.points[-1].usd_per_h,
        one.lowest_usd_per_h,
        one.median_usd_per_h(until),
        one.highest_usd_per_h,
    )
    return [
        _machine(one),
        _place(one),
        one.market,
        one.source,
        f"{one.points[0].observed_at:%Y-%m-%d}",
        str(len(one.points) - 1),
        *(f"{price:.4f}" for price in prices),
    ]


def _narrow_row(one: Series, until: datetime) -> list[str]:
    machine, place, market, source, since, changes, first, last, lowest, median, highest = _row(one, until)
    told_by = "" if source == one.provider else f" ({source})"
    return [
        stacked(f"{machine}{told_by}", f"{place} {market}"),
        stacked(since, changes),
        stacked(first, last),
        stacked(lowest, highest),
        median,
    ]


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
