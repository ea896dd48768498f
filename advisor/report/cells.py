"""What stands in a table, beside a name or on an axis: a value, and the kind that says how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeAlias

from advisor.core.units import format_bytes, format_duration, format_duration_short, format_usd
from advisor.core.values import Interval, Quantiles

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Kind:
    """How numbers of one sort are written, and on which side of their column they stand."""

    name: str
    words: Callable[[float], str]
    is_right: bool = True


TEXT = Kind("text", str, is_right=False)
COUNT = Kind("count", "{:,}".format)
PLAIN = Kind("plain", str)
ROUNDED = Kind("rounded", "{:,.0f}".format)
FOUR_DIGITS = Kind("four digits", "{:.4g}".format)
DECIMALS = Kind("three decimals", "{:.3f}".format)
SHARE = Kind("share", "{:.1%}".format)
MULTIPLE = Kind("multiple", "{:.2f} x".format)
USD = Kind("USD", format_usd)
CENTS = Kind("USD and cents", lambda usd: f"{'-' if usd < 0 else ''}${abs(usd):,.2f}")
USD_PER_H = Kind("USD per hour", "{:.4f}".format)
BYTES = Kind("bytes", format_bytes)
DURATION = Kind("duration", format_duration)
SHORT_DURATION = Kind("short duration", format_duration_short)
MICROSECONDS = Kind("microseconds", lambda seconds: f"{seconds * 1e6:,.1f} us")
INTERVAL = Kind("interval of durations", format_duration, is_right=False)
DAY = Kind("day", lambda timestamp: day_text(datetime.fromtimestamp(timestamp, UTC)), is_right=False)


@dataclass(frozen=True, slots=True)
class Worded:
    """A number in words of its own, such as ``3.67, 111 d``; the number is what a column is sorted by."""

    text: str
    value: float | None


Value: TypeAlias = str | float | date | Quantiles | Interval | Worded | None
Cell: TypeAlias = Value | tuple[Value, ...]


def cell_lines(cell: Cell, kind: Kind) -> list[str]:
    """The lines of a cell, not yet safe to print; a text stands for itself, whatever the kind.

    >>> cell_lines((1.5, "free", None), USD)
    ['$1.50', 'free', '-']
    """
    return [_line(value, kind) for value in cell] if isinstance(cell, tuple) else [_line(cell, kind)]


def _line(value: Value, kind: Kind) -> str:
    match value:
        case None:
            return NOTHING
        case str():
            return value
        case Worded():
            return value.text
        case date():
            return day_text(value)
        case Quantiles():
            return with_p90(value, kind.words)
        case Interval():
            return interval_text(value, kind.words)
        case _:
            return kind.words(value)


def day_text(day: date) -> str:
    """``2026-11-21``."""
    return f"{day:%Y-%m-%d}"


def interval_text(interval: Interval, words: Callable[[float], str] = format_duration) -> str:
    """``120 ms .. 183 ms .. 270 ms``."""
    return " .. ".join(map(words, (interval.p10, interval.p50, interval.p90)))


def with_p90(quantiles: Quantiles, words: Callable[[float], str]) -> str:
    """``median (p90)``; the median alone where both look the same."""
    p50, p90 = words(quantiles.p50), words(quantiles.p90)
    return p50 if p50 == p90 else f"{p50} ({p90})"
