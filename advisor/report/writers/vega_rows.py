"""The data of a chart, row by row as Vega takes it: numbers, and texts that are safe to show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from advisor.report.cells import DAY
from advisor.report.document import Axis, Chart, Detail, Point, Range, Series
from advisor.report.plain import shown
from advisor.report.writers.plot import MARKS
from advisor.report.writers.ticks import Scale, scale_of

Row: TypeAlias = dict[str, float | str]
# Enough for a screen; a figure of a report is read from its text.
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What layers draw, by the name of its kind, and the two scales.

    Attributes:
        data: only what there is; ``ends`` are the last points of lines and of guides.
        x: of bars the scale of their lengths.
        is_time: whether x is a moment, in milliseconds as JavaScript counts them.
        bars: their names.
    """

    data: Mapping[str, list[Row]]
    x: Scale
    y: Scale
    is_time: bool
    bars: tuple[str, ...]


def rows_of(chart: Chart) -> Rows:
    """All that is drawn.

    Raises:
        ValueError: nothing is.
    """
    if not chart.others and not any(one.points for one in chart.series):
        raise ValueError("a chart needs points")
    return _Reader(chart).rows()


def is_lettered(chart: Chart) -> bool:
    """Whether each series is one point with a letter beside it, as in a terminal."""
    return chart.until is None and not chart.bars and all(len(one.points) == 1 for one in chart.series)


class _Reader:
    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        self._is_time = chart.x.kind is DAY
        self._is_lettered = is_lettered(chart)

    def rows(self) -> Rows:
        x, y = self._scales()
        data = {name: rows for name, rows in self._data().items() if rows}
        bars = tuple(map(shown, self._chart.bars))
        return Rows(data=data, x=x, y=y, is_time=self._is_time, bars=bars)

    def _data(self) -> dict[str, list[Row]]:
        chart = self._chart
        is_line = chart.until is not None
        points = [row for place, one in enumerate(chart.series) for row in self._points(place, one)]
        return {
            "points": points,
            "ends": [
                row
                for row, after in zip_longest(points, points[1:])
                if after is None or after["place"] != row["place"]
            ],
            "others": [
                {**self._at(point), "hover": self._hover(chart.others_label, point, detail)}
                for point, detail in Series("", chart.others, chart.others_details).detailed()
            ],
            "x_errors": [] if is_line else list(self._errors("y" if chart.bars else "x")),
            "y_errors": [] if is_line or chart.bars else list(self._errors("y")),
            "bands": self._bands(chart.series) if is_line else [],
            "guides": [
                {**self._at(point), "place": i} for i, one in enumerate(chart.guides) for point in one.points
            ],
            "guide_ends": [
                {**self._at(one.points[-1]), "name": shown(one.label)} for one in chart.guides if one.points
            ],
            "guide_bands": self._bands(chart.guides),
        }

    def _points(self, place: int, series: Series) -> Iterator[Row]:
        for point, detail in series.detailed():
            row: Row = {"place": place, "hover": self._hover(series.label, point, detail)}
            if self._chart.bars:
                yield row | {"bar": int(point[0]), "x": _short(point[1])}
            elif self._is_lettered:
                yield row | self._at(point) | {"letter": MARKS[place % len(MARKS)]}
            else:
                yield row | self._at(point)
        if self._chart.until is not None and series.points:
            end = self._chart.until, series.points[-1][1]
            yield {"place": place, "hover": self._hover(series.label, end, Detail()), **self._at(end)}

    def _errors(self, side: Literal["x", "y"]) -> Iterator[Row]:
        for place, one in enumerate(self._chart.series):
            for point, detail in one.detailed():
                span = detail.x_range if side == "x" else detail.y_range
                if span is None or not all(map(math.isfinite, span)):
                    continue
                low, high = self._clipped(span)
                if self._chart.bars:
                    yield {"bar": int(point[0]), "x": low, "x2": high}
                else:
                    yield {**self._at(point), "place": place, side: low, f"{side}2": high}

    def _clipped(self, span: Range) -> Range:
        """On a logarithmic scale a range ends above zero."""
        low, high = span
        return (_short(max(low, high / 1e3) if self._chart.is_log else low), _short(high))

    def _bands(self, series: Sequence[Series]) -> list[Row]:
        """A stretch without a range parts a band in two."""
        rows: list[Row] = []
        for place, one in enumerate(series):
            part = 0
            for i, (point, detail) in enumerate(one.detailed()):
                if detail.y_range is None:
                    part += 1
                    continue
                low, high = self._clipped(detail.y_range)
                row: Row = {**self._at(point), "place": place, "part": part, "y": low, "y2": high}
                rows.append(row)
                if i == len(one.points) - 1 and self._chart.until is not None and one in self._chart.series:
                    rows.append({**row, "x": self._at((self._chart.until, low))["x"]})
        return rows

    def _at(self, point: Point) -> Row:
        x, y = point
        return {"x": round(x * 1000) if self._is_time else _short(x), "y": _short(y)}

    def _hover(self, label: str, point: Point, detail: Detail) -> str:
        if detail.label:
            return "\n".join(map(shown, detail.label.split("\n")))
        chart = self._chart
        x = chart.bars[int(point[0])] if chart.bars else _words(chart.x, point[0])
        return "\n".join(map(shown, (label, f"{x}: {_words(chart.y, point[1])}")))

    def _scales(self) -> tuple[Scale, Scale]:
        chart = self._chart
        if chart.bars:
            lengths = scale_of(chart.y, self._stacked(), is_log=False, has_zero=True)
            return lengths, lengths
        xs, ys = self._extent(0), self._extent(1)
        return scale_of(chart.x, xs, is_log=chart.is_log), scale_of(chart.y, ys, is_log=chart.is_log)

    def _stacked(self) -> list[float]:
        """How far the bars reach to either side."""
        ends = [0.0]
        for bar in range(len(self._chart.bars)):
            parts = [y for one in self._chart.series for x, y in one.points if int(x) == bar]
            ends += [sum(max(part, 0.0) for part in parts), sum(min(part, 0.0) for part in parts)]
        details = (detail for one in self._chart.series for detail in one.details)
        return ends + [end for detail in details for end in detail.y_range or () if math.isfinite(end)]

    def _extent(self, side: int) -> list[float]:
        chart = self._chart
        drawn = (*chart.series, *chart.guides, Series("", chart.others))
        values = [] if side or chart.until is None else [chart.until]
        for one in drawn:
            for point, detail in one.detailed():
                span = detail.y_range if side else detail.x_range
                is_drawn = span is not None and all(map(math.isfinite, span))
                values += [point[side], *(self._clipped(span) if span is not None and is_drawn else ())]
        return values


def _words(axis: Axis, value: float) -> str:
    return axis.kind.words(int(value) if float(value).is_integer() else value)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
