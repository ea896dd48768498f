"""Constants, conversion at the edge, and formatting. Inside: seconds, bytes, FLOPs, US dollars.

GB and GiB never mix: marketing gigabytes are powers of ten, what a GPU reports are powers of two.
"""

import math
import re
from collections.abc import Callable

MB, GB, TB = 10**6, 10**9, 10**12
KIB, MIB, GIB = 2**10, 2**20, 2**30

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86400.0
# The average month, by which clouds prorate: https://cloud.google.com/compute/disks-image-pricing
HOURS_PER_MONTH = 730

_DURATION_UNIT_S = {
    "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": MINUTE_S, "min": MINUTE_S, "h": HOUR_S, "hr": HOUR_S,
    "d": DAY_S, "w": 7 * DAY_S,
}  # fmt: skip
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def parse_duration_s(text: str) -> float:
    """Seconds of ``"90m"``, ``"1h30m"``, ``"2d"``; a bare number has no unit and is refused.

    Raises ValueError: the text is no duration.

    >>> parse_duration_s("1h30m")
    5400.0
    """
    compact = text.strip().lower()
    parts = _DURATION_PART.findall(compact)
    rebuilt = _DURATION_PART.sub("", compact).strip()
    if not parts or rebuilt or any(unit not in _DURATION_UNIT_S for _, unit in parts):
        raise ValueError(
            f"{text!r} is not a duration: write a number with a unit"
            " (ms, s, m, h, d, w), such as 90m, 12h or 1d6h"
        )
    seconds = sum(float(number) * _DURATION_UNIT_S[unit] for number, unit in parts)
    if not math.isfinite(seconds):
        raise ValueError("a duration of more than 300 digits is not one: write such as 90m, 12h or 1d6h")
    return seconds


def whole_number(text: str) -> int | None:
    """What the text says in ASCII digits; None for a sign, a superscript, or thousands of digits.

    >>> whole_number("12"), whole_number("²"), whole_number("-1")
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def format_duration(seconds: float) -> str:
    """Two units at most: ``"3 d 4 h"``, ``"12 h 5 min"``, ``"42 s"``, ``"183 ms"``.

    >>> format_duration(273_900)
    '3 d 4 h'
    """
    if not math.isfinite(seconds):
        return "never"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    total_min = round(seconds / MINUTE_S)
    if total_min < 60:
        return f"{total_min} min"
    hours, minutes = divmod(total_min, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / HOUR_S), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def exact_duration(seconds: float) -> str:
    """A duration as a settings file holds it, without rounding.

    >>> exact_duration(5420), exact_duration(0), exact_duration(0.25)
    ('1h30m20s', '0s', '250ms')
    """
    parts = []
    rest = round(seconds, 3)
    for unit, size in (("d", DAY_S), ("h", HOUR_S), ("m", MINUTE_S)):
        count, rest = divmod(rest, size)
        parts += [f"{count:.0f}{unit}"] if count else []
    whole, fraction = divmod(round(rest, 3), 1)
    parts += [f"{whole:.0f}s"] if whole else []
    parts += [f"{fraction * 1000:.0f}ms"] if round(fraction, 3) else []
    return "".join(parts) or "0s"


def format_duration_short(seconds: float) -> str:
    """One unit, two digits, for tables: ``"58 min"``, ``"1.1 h"``, ``"6.6 d"``.

    >>> format_duration_short(4020), format_duration_short(570_000)
    ('1.1 h', '6.6 d')
    """
    if not math.isfinite(seconds) or seconds < 59.5:
        return format_duration(seconds)
    for unit, size, limit in (("min", MINUTE_S, 60), ("h", HOUR_S, 48), ("d", DAY_S, math.inf)):
        value = seconds / size
        if round(value) < limit:
            return f"{value:,.0f} {unit}" if value >= 10 or unit == "min" else f"{value:.1f} {unit}"
    raise AssertionError(seconds)


def format_bytes(num_bytes: float) -> str:
    """Binary units, as a GPU reports its memory: ``"5.41 GiB"``.

    >>> format_bytes(5.41 * GIB)
    '5.41 GiB'
    >>> format_bytes(1100 * GIB)
    '1,100 GiB'
    """
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        # Just below the next unit, three digits would round up to 1e+03 of this one.
        if num_bytes >= 0.9995 * size * (1 if size == KIB else 1000 / 1024):
            return f"{num_bytes / size:{',.0f' if num_bytes >= 999.5 * size else '.3g'}} {unit}"
    return f"{num_bytes:.0f} B"


def format_usd(usd: float) -> str:
    """Cents below 1,000 dollars, whole dollars above: ``"$8.33"``, ``"$12,345"``.

    >>> format_usd(8.3333), format_usd(12345.6)
    ('$8.33', '$12,346')
    """
    if not math.isfinite(usd):
        return "unbounded"
    if 0 < abs(usd) < 0.01:
        return f"${usd:.4f}" if abs(usd) >= 0.00005 else "<$0.0001"
    return f"${usd:,.0f}" if abs(usd) >= 1000 else f"${usd:,.2f}"


def format_signed(amount: float, words: Callable[[float], str]) -> str:
    """With a sign before the unit.

    >>> format_signed(-41, format_usd)
    '-$41.00'
    """
    return f"{'-' if amount < 0 else '+'}{words(abs(amount))}"


def format_change(relative: float) -> str:
    """A change in percent, with a digit more where it would look like none.

    >>> format_change(0.2345), format_change(-0.017)
    ('+23 %', '-1.7 %')
    """
    return f"{relative * 100:+.{0 if abs(relative) >= 0.0995 else 1}f} %"


def duration_of_text_s(value: object) -> object:
    """Seconds of a duration that a file holds, which has to name its unit; as a validator of pydantic.

    Raises ValueError: no text, or none that is a duration.
    """
    if isinstance(value, str):
        return parse_duration_s(value)
    raise ValueError(f"{value!r} has no unit: write a duration such as 90m, 12h or 1d6h")


def at_most_s(most_s: float) -> Callable[[float], float]:
    """A validator of pydantic that refuses longer durations, as ``ValueError``."""

    def checked(seconds: float) -> float:
        if seconds > most_s:
            raise ValueError(f"Input should be at most {exact_duration(most_s)}")
        return seconds

    return checked
