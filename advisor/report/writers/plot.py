"""A chart drawn with letters, and the scales of its axes."""

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.report.document import DURATION, INTERVAL, SHORT_DURATION, Axis, Chart, Point
from advisor.report.plain import shown

_DURATIONS = (DURATION, SHORT_DURATION, INTERVAL)
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
# What a clock or a calendar is divided into, between decimal fractions of a second and decimal days.
_CLOCK = (10, 30, 60, 120, 300, 600, 1800, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR)
_MOST = 7
# Room beyond the outermost points.
_LINEAR_ROOM, _LOG_ROOM = 0.05, 1.25
# Floating point has no steps between numbers that lie closer.
_LEAST_ROOM = 1e-300
# Above this share of the highest a scale need not begin at zero.
_FAR_FROM_ZERO = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From ``low`` to ``high``, with some values and how they are written."""

    low: float
    high: float
    ticks: tuple[float, ...]
    words: tuple[str, ...]


def scale_of(axis: Axis, values: Sequence[float], *, is_log: bool, has_zero: bool = False) -> Scale:
    """A scale with room for all values (above 0 where ``is_log``), from zero where ``has_zero``."""
    least, most = min(values), max(values)
    if is_log:
        low, high = least / _LOG_ROOM, most * _LOG_ROOM
        ticks = _thinned([tick for tick in _ladder(axis, low, high) if low <= tick <= high])
    else:
        low, high = _linear_ends(least, most, has_zero=has_zero)
        ticks = _evenly(axis, low, high)
    if axis.lowest is not None:
        ticks = [least, *(tick for tick in ticks if tick > least * _LOG_ROOM)]
    return Scale(
        low=low, high=high, ticks=tuple(ticks), words=tuple(_words(axis, tick, least) for tick in ticks)
    )


def _linear_ends(least: float, most: float, *, has_zero: bool) -> tuple[float, float]:
    starts_at_zero = has_zero or 0 <= least <= _FAR_FROM_ZERO * most
    low, high = (min(least, 0.0), max(most, 0.0)) if starts_at_zero else (least, most)
    room = max((high - low or abs(high) or 1.0) * _LINEAR_ROOM, _LEAST_ROOM)
    return low if low == 0 else low - room, high if high == 0 and low else high + room


def _words(axis: Axis, tick: float, least: float) -> str:
    if axis.lowest is not None and tick == least:
        return axis.lowest
    # Counts are whole numbers to their kind.
    return axis.kind.words(int(tick) if tick.is_integer() else tick)


def _ladder(axis: Axis, low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten; of durations, what clocks and calendars are divided into."""
    if axis.kind not in _DURATIONS:
        return _decimal(low, high)
    days = (_DAY * tick for tick in _decimal(1.0, max(high / _DAY, 1.0)))
    return [*(tick for tick in _decimal(low, 5.0) if tick <= 5.0), *map(float, _CLOCK), *days]


def _decimal(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]


def _thinned(ticks: Sequence[float]) -> list[float]:
    """As many as there is room for; whole powers of ten rather than what lies between them."""
    if len(ticks) > _MOST:
        tens = [tick for tick in ticks if math.log10(tick).is_integer()]
        ticks = tens if len(tens) > 2 else ticks
    return list(ticks[:: math.ceil(len(ticks) / _MOST) or 1])


def _evenly(axis: Axis, low: float, high: float) -> list[float]:
    least = (high - low) / _MOST
    step = next(step for step in _ladder(axis, least, 10 * least) if step >= least)
    first = math.ceil(low / step)
    # A product may lie a rounding below the end that it stands for.
    return [tick for i in range(first, first + 2 * _MOST) if low <= (tick := i * step) <= high]


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

    ``width`` is of the whole drawing; ``is_log`` is for values above 0 and of both axes. Where two fall on
    one place, the earlier series shows, and a dot (of no series) last. Raises ValueError: no point at all, or
    more series than letters.
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
    names = [labels[0], *[""] * (height - 2), labels[1]]
    framed = (f"{name:>{margin}} |{''.join(row).rstrip()}" for name, row in zip(names, grid, strict=True))
    return "\n".join([*framed, _x_axis(xs, x_text, margin, columns), *_legend(series)])


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


def _x_axis(xs: Sequence[float], x_text: Callable[[float], str], margin: int, columns: int) -> str:
    low, high = x_text(min(xs)), x_text(max(xs))
    line = " " * margin + " +" + "-" * columns
    return f"{line}\n{' ' * (margin + 2)}{low}{high:>{max(columns - len(low), len(high) + 1)}}"
