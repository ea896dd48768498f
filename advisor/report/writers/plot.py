"""Curves and points in a terminal: a grid of characters, a letter for each series, a scale on each side."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from advisor.report.document import Axis, Chart, Point
from advisor.report.plain import shown

MARKS = string.ascii_uppercase
DOT = "."
Points = Sequence[Point]
# Curves get no clearer by being longer; a value over time is looked up at this many moments.
_CURVE_WIDTH, _MOMENTS = 78, 200
_TOO_MANY = f"between 1 and {len(MARKS)} series with points can be drawn, got {{}}"


def draw_chart(chart: Chart, width: int) -> Iterator[str]:
    """The lines of a chart in a terminal of ``width`` characters, its legend below; they may be longer.

    Guides, and how far a point may be off, are left out.
    """
    if chart.title:
        yield shown(chart.title)
    yield from (_bars if chart.bars else _grid)(chart, width)
    if chart.others_label:
        yield f"{DOT} {shown(chart.others_label)}"
    if chart.note:
        yield f"  {shown(chart.note)}"


def _grid(chart: Chart, width: int) -> list[str]:
    until = chart.until
    series = {
        one.label: one.points if until is None else steps(one.points, until, _MOMENTS) for one in chart.series
    }
    points = [*chart.others, *(point for points_of_one in series.values() for point in points_of_one)]
    drawing = draw(
        series,
        x_text=_text_of(chart.x, [x for x, _ in points]),
        y_text=_text_of(chart.y, [y for _, y in points]),
        width=width if until is None else min(width, _CURVE_WIDTH),
        is_log=chart.is_log,
        dots=chart.others,
    )
    return drawing.splitlines()


def _bars(chart: Chart, width: int) -> Iterator[str]:
    """A line for each bar: its name, a letter for each share of the largest, and its sum."""
    if len(chart.series) > len(MARKS):
        raise ValueError(_TOO_MANY.format(len(chart.series)))
    names = [shown(name) for name in chart.bars]
    heights = [dict(series.points) for series in chart.series]
    stacks = [[height.get(place, 0.0) for height in heights] for place in range(len(names))]
    sums = [chart.y.kind.words(sum(stack)) for stack in stacks]
    margin, highest = max(map(len, names)), max(sum(max(part, 0.0) for part in stack) for stack in stacks)
    cells = max(min(width, _CURVE_WIDTH) - margin - max(map(len, sums)) - 3, 10)
    for name, stack, total in zip(names, stacks, sums, strict=True):
        yield f"{name:<{margin}} |{_letters(stack, highest, cells)} {total}"
    yield from _legend(series.label for series in chart.series)


def _letters(stack: Sequence[float], highest: float, cells: int) -> str:
    """As many of each as its part is high, ``cells`` for the highest; what is below zero has none."""
    letters, height = "", 0.0
    for mark, part in zip(MARKS, stack, strict=False):
        height += max(part, 0.0)
        letters += mark * (round(height / (highest or 1.0) * cells) - len(letters))
    return letters


def _legend(labels: Iterable[str]) -> list[str]:
    return [f"{mark} {shown(label)}" for mark, label in zip(MARKS, labels, strict=False)]


def _text_of(axis: Axis, values: Sequence[float]) -> Callable[[float], str]:
    least, lowest = min(values), axis.lowest
    return lambda value: lowest if lowest is not None and value == least else axis.kind.words(value)


def draw(
    series: Mapping[str, Points],
    *,
    x_text: Callable[[float], str],
    y_text: Callable[[float], str],
    width: int = 78,
    height: int = 16,
    is_log: bool = False,
    dots: Points = (),
) -> str:
    """Points of each series under its letter, and the legend below.

    Args:
        series: label -> points; where two fall on one place, the earlier series shows.
        x_text: how a value of the horizontal axis is written.
        y_text: how one of the vertical axis is.
        width: characters of the whole drawing.
        height: rows of the grid.
        is_log: both axes logarithmic, for values above 0.
        dots: points of no series, each a dot where nothing else is.

    Raises:
        ValueError: no point at all, or more series than letters.
    """
    points = [*dots, *(point for marks in series.values() for point in marks)]
    if not points or len(series) > len(MARKS):
        raise ValueError(_TOO_MANY.format(len(series)))
    scale = math.log if is_log else float
    xs, ys = [x for x, _ in points], [y for _, y in points]
    labels = [y_text(max(ys)), y_text(min(ys))]
    margin = max(map(len, labels))
    columns = max(width - margin - 3, 10)
    grid = [[" "] * columns for _ in range(height)]
    marked = [*zip(MARKS, series.values(), strict=False), (DOT, dots)]
    for mark, marks in reversed(marked):
        for x, y in marks:
            column = _place(scale(x), scale(min(xs)), scale(max(xs)), columns)
            grid[height - 1 - _place(scale(y), scale(min(ys)), scale(max(ys)), height)][column] = mark
    return "\n".join([*_framed(grid, labels, margin), _x_axis(xs, x_text, margin, columns), *_legend(series)])


def steps(points: Points, until: float, columns: int) -> list[tuple[float, float]]:
    """A value that holds until the next, at evenly spaced moments from the first to ``until``."""
    start = points[0][0]
    steps_so_far, at = [], 0
    # The last moment as it is given: the sum may be a digit less, and would miss a value of that moment.
    moments = [*(start + (until - start) * i / (columns - 1) for i in range(columns - 1)), until]
    for x in moments:
        while at + 1 < len(points) and points[at + 1][0] <= x:
            at += 1
        steps_so_far.append((x, points[at][1]))
    return steps_so_far


def _place(value: float, low: float, high: float, cells: int) -> int:
    return 0 if high <= low else min(int((value - low) / (high - low) * cells), cells - 1)


def _framed(grid: Sequence[Sequence[str]], labels: Sequence[str], margin: int) -> list[str]:
    lines = []
    for i, row in enumerate(grid):
        label = labels[0] if i == 0 else labels[1] if i == len(grid) - 1 else ""
        lines.append(f"{label:>{margin}} |{''.join(row).rstrip()}")
    return lines


def _x_axis(xs: Sequence[float], x_text: Callable[[float], str], margin: int, columns: int) -> str:
    low, high = x_text(min(xs)), x_text(max(xs))
    line = " " * margin + " +" + "-" * columns
    return f"{line}\n{' ' * (margin + 2)}{low}{high:>{max(columns - len(low), len(high) + 1)}}"
