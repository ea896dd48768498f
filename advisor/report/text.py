"""Intervals and quantiles in words."""

from __future__ import annotations

from collections.abc import Callable

from advisor.core.units import format_duration
from advisor.core.values import Interval, Quantiles


def interval_text(interval: Interval) -> str:
    """``120 ms .. 183 ms .. 270 ms``."""
    return " .. ".join(format_duration(s) for s in (interval.p10, interval.p50, interval.p90))


def with_p90(quantiles: Quantiles, text: Callable[[float], str]) -> str:
    """``median (p90)``; the median alone where both look the same."""
    p50, p90 = text(quantiles.p50), text(quantiles.p90)
    return p50 if p50 == p90 else f"{p50} ({p90})"
