"""Where an axis begins and ends, and which values are written beside it, in the words of their kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from advisor.report.cells import DURATION, INTERVAL, SHORT_DURATION
from advisor.report.document import Axis

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
    """A scale with room for all values.

    Args:
        axis: the kind of the values.
        values: at least one; above 0 where ``is_log``.
        is_log: whether equal distances are equal factors.
        has_zero: whether it must begin at zero, as bars do.
    """
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
    return list(takewhile(lambda tick: tick <= high, (i * step for i in _from(first))))


def _from(first: int) -> Iterable[int]:
    return range(first, first + 2 * _MOST)
