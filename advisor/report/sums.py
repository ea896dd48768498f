"""Parts of a total, rounded so that what is printed adds up to the printed total."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Words = Callable[[int], str]


def rounded(parts: Mapping[str, float], total: float, unit: float) -> dict[str, int]:
    """Whole units of each part, together those of the rounded total; none is off by a unit or more.

    The method of largest remainders: all parts are rounded down, and those that lost most are rounded up.
    Parts must add up to the total.

    >>> rounded({"a": 1.4, "b": 1.4, "c": 0.2}, 3.0, 1.0)
    {'a': 2, 'b': 1, 'c': 0}
    """
    exact = {name: part / unit for name, part in parts.items()}
    whole = {name: math.floor(value) for name, value in exact.items()}
    missing = round(total / unit) - sum(whole.values())
    by_loss = sorted(exact, key=lambda name: whole[name] - exact[name])
    return {name: whole[name] + (name in by_loss[: max(missing, 0)]) for name in whole}


def with_rest(parts: Mapping[str, float], total: float, unit: float, name: str) -> dict[str, float]:
    """The parts, and what they lack of the total where that is worth a line."""
    rest = total - sum(parts.values())
    if abs(rest) < unit / 2 and parts:
        return dict(parts)
    return {**parts, name: rest}


def clock(total_s: float) -> tuple[float, Words]:
    """Unit in seconds, and how a number of units is written: ``h:mm:ss``; thousandths below a minute.

    >>> unit, words = clock(5400.0)
    >>> words(5400)
    '1:30:00'
    """
    if total_s >= 60:
        return 1.0, _clock_words
    return 0.001, lambda units: f"{units / 1000:.3f} s"


def _clock_words(seconds: int) -> str:
    minutes, rest_s = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' * (seconds < 0)}{hours:,}:{minutes:02}:{rest_s:02}"


def dollars(total_usd: float) -> tuple[float, Words]:
    """Unit in dollars, and how a number of units is written: cents, four digits below a dollar.

    >>> unit, words = dollars(1234.5)
    >>> words(123450)
    '$1,234.50'
    """
    digits = 2 if total_usd >= 1 else 4
    return 10.0**-digits, lambda units: f"{'-' * (units < 0)}${abs(units) / 10**digits:,.{digits}f}"


def short_times(total_s: float) -> tuple[float, Words]:
    """Unit in seconds, and how a number of units is written: ms or s with four digits of the total.

    >>> unit, words = short_times(0.0355)
    >>> words(3550)
    '35.50 ms'
    """
    name, size = ("s", 1.0) if total_s >= 1 else ("ms", 1e-3)
    digits = max(3 - math.floor(math.log10(total_s / size)), 0)
    return size * 10.0**-digits, lambda units: f"{units / 10**digits:,.{digits}f} {name}"
