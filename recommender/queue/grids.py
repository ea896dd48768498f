"""Distributions of waits as quantiles at fixed levels, in log minutes: a *grid*.

Waits y are counted in log minutes, ln(1 + minutes): errors are relative, and no wait at all is 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import MINUTE_S

Array = NDArray[np.float64]

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999)
"""Probabilities of a grid's quantiles."""
NUM_CELLS = len(LEVELS) + 1
"""A grid parts all waits into cells: below its first quantile, between two, above its last."""
CELL_ENDS = (0.0, *LEVELS, 1.0)
CELL_SHARES: Array = np.diff(np.array(CELL_ENDS))
"""How many waits fall into each cell if the grid is right."""
# A billionth is no difference: quantiles went through a logarithm.
_EQUAL = 1e-9
_TAIL_SHARE = 10  # one in ten


def to_log_minutes(wait_s: float) -> float:
    """ln(1 + minutes)."""
    return math.log1p(wait_s / MINUTE_S)


def to_waits_s(log_minutes: Array) -> Array:
    """Its inverse."""
    return np.asarray(np.expm1(log_minutes) * MINUTE_S)


def level_index(probability: float) -> int:
    """Where a level stands in a grid."""
    return LEVELS.index(probability)


def grid_of(ordered: Sequence[float]) -> list[float]:
    """Quantiles by Weibull's plotting positions, p * (n + 1).

    Beyond the longest of n waits the tail goes on exponentially, as long as the longest tenth exceed their
    threshold on average (Weissman, JASA 73, 1978, with Hill's estimator; log minutes make it a Pareto tail).

    Args:
        ordered: one wait at least, in log minutes.
    """
    places, beyond = _places(len(ordered))
    quantiles = [ordered[low] + share * (ordered[high] - ordered[low]) for low, high, share in places]
    if beyond:
        num_longest = max(len(ordered) // _TAIL_SHARE, 2)
        longest = ordered[-num_longest:]
        threshold = ordered[max(len(ordered) - num_longest - 1, 0)]
        excess = sum(longest) / len(longest) - threshold
        quantiles += [ordered[-1] + excess * factor for factor in beyond]
    return quantiles


def cells_of(grid: Sequence[float], wait: float) -> tuple[int, int]:
    """The first cell that holds a wait, and the one after the last: several between equal quantiles."""
    first, last = bisect_left(grid, wait - _EQUAL), bisect_right(grid, wait + _EQUAL)
    if last - first < 2:
        return first, first + 1
    return first + 1 if first else 0, NUM_CELLS if last == len(grid) else last


@lru_cache(maxsize=2**14)
def _places(count: int) -> tuple[list[tuple[int, int, float]], list[float]]:
    """Of each level the waits around it and its share of their distance; of those beyond, a factor."""
    places, beyond = [], []
    for level in LEVELS:
        if level > count / (count + 1):
            beyond.append(math.log(1 / (count + 1) / (1 - level)))
            continue
        position = min(max(level * (count + 1) - 1, 0.0), count - 1.0)
        low = math.floor(position)
        places.append((low, min(low + 1, count - 1), position - low))
    return places, beyond
