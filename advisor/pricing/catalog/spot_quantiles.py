"""Quantiles of a price that changes now and then, weighted by how long each price held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise

from advisor.core.values import Interval, PricePoint

# Sums of seconds are exact to far less than this share of the whole.
_ROUNDING = 1e-9


def spot_quantiles(points: Iterable[PricePoint], *, start: datetime, end: datetime) -> Interval | None:
    """The prices at or below which 10 %, 50 % and 90 % of the time was spent.

    A price holds from its moment to the next point's, the last one to ``end``. What held before ``start``
    counts from ``start`` on; the time before the first point is unknown and does not count.

    Args:
        points: of one machine in one zone and market, in any order; of equal moments the last counts.
        start: where the window begins.
        end: where it ends.

    Returns:
        USD per hour, each of them a price of ``points``; None if no price held for any time.
    """
    held_s = _held_s(points, start, end)
    total_s = sum(held_s.values())
    if total_s <= 0:
        return None
    p10, p50, p90 = (_quantile(held_s, share * total_s * (1 - _ROUNDING)) for share in (0.1, 0.5, 0.9))
    return Interval(p10=p10, p50=p50, p90=p90)


def _held_s(points: Iterable[PricePoint], start: datetime, end: datetime) -> Mapping[float, float]:
    """Seconds within the window by price."""
    changes = [(point.observed_at, point.usd_per_h) for point in points]
    changes.sort(key=lambda change: change[0])
    held_s: defaultdict[float, float] = defaultdict(float)
    for (begin, usd_per_h), (until, _) in pairwise([*changes, (end, 0.0)]):
        within_s = (min(until, end) - max(begin, start)).total_seconds()
        if within_s > 0:
            held_s[usd_per_h] += within_s
    return held_s


def _quantile(held_s: Mapping[float, float], wanted_s: float) -> float:
    """The lowest price at or below which the wanted time was spent."""
    so_far_s = 0.0
    for usd_per_h in sorted(held_s):
        so_far_s += held_s[usd_per_h]
        if so_far_s >= wanted_s:
            return usd_per_h
    return max(held_s)
