"""Distributions of waits as quantiles at fixed levels, in log minutes: a *grid*.

Waits y are counted in log minutes, ln(1 + minutes): errors are relative, and no wait at all is 0.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import DAY_S, MINUTE_S

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
    """Quantiles by Weibull's plotting positions, p * (n + 1), of one wait at least, in log minutes.

    Beyond the longest of n waits the tail goes on exponentially, as long as the longest tenth exceed their
    threshold on average (Weissman, JASA 73, 1978, with Hill's estimator; log minutes make it a Pareto tail).
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


_SCORES: Array = -np.log1p(-np.array(LEVELS))
"""Of the levels in the exponential distribution: what has waited so long starts anew."""


def at_levels(grid: Array, levels: Array) -> Array:
    """Quantiles at other levels; beyond the last the tail goes on exponentially in log minutes."""
    return _at_scores(grid, -np.log1p(-np.minimum(levels, 1 - 1e-9)))


def after(grid: Array, age: float) -> Array:
    """The grid of jobs that have waited for ``age`` and wait still; all in log minutes."""
    # Where quantiles are equal the last one counts: none that waits still waited as long.
    rising = grid + _EQUAL * np.arange(len(grid))
    beyond = max(age - grid[-1], 0.0) / _tail(grid)
    return np.maximum(
        _at_scores(grid, float(np.interp(age, rising, _SCORES, left=0.0)) + beyond + _SCORES), age
    )


def _at_scores(grid: Array, scores: Array) -> Array:
    beyond = np.maximum(scores - _SCORES[-1], 0.0)
    return np.asarray(np.interp(scores, _SCORES, grid) + beyond * _tail(grid))


def _tail(grid: Array) -> float:
    """Growth of waits with scores beyond a grid; a power law of 1 where the last quantiles are equal."""
    longer = float(grid[-1] - grid[-4])
    return longer / float(_SCORES[-1] - _SCORES[-4]) if longer > 0 else 1.0


# --- What forecasts got wrong lately -> how to read the next ones ----------------------------------------
#
# Each wait that becomes known falls into a cell of the forecast that was issued when its job was submitted.
# If forecasts are right, every cell gets its share. If a tenth of the cells' width got a third of the
# waits, the quantiles are read at other levels until it is a tenth again (recalibration: Kuleshov et al.,
# ICML 2018).
#
# - A job counts by a factor of e less for every two weeks since its submission, and all stand beside a
#   hundred waits that were foreseen right. So little or old evidence moves little, and nothing is read
#   beyond the grid's last quantile and the longest wait that lasts still.
# - Jobs that wait still are censored: they count among those at risk in all cells that their age has reached
#   (Kaplan and Meier, JASA 53, 1958). Leaving them out would call every jam short.

# Chosen on the first 60 % of KTH, on MIT and on Alibaba: docs/methods/queue-wait.md.
MEMORY_S = 14 * DAY_S
RIGHT_ONES = 100.0
RIGHT_ONES_OF_STATE = 30.0
"""Of waits that a wider correction foresaw right, beside which those of one state count."""
FORGOTTEN_S = 6 * MEMORY_S
"""After this a job weighs a quarter of a percent, and need not be looked at."""

_ENDS = np.arange(-1.0, NUM_CELLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridReading:
    """How to read grids at a moment."""

    shares: Array
    """Of the waits, by cell of a grid [NUM_CELLS]."""
    longest: float
    """The longest wait that lasts still, in log minutes: it ends the cell above a grid."""

    @property
    def places(self) -> Array:
        """Where in a grid each of its levels stands [levels]."""
        return np.asarray(np.interp(LEVELS, _reached(self.shares), _ENDS))

    def levels_of(self, other: "GridReading") -> Array:
        """At which levels quantiles that are read so are those of another reading [levels]."""
        return np.asarray(np.interp(other.places, _ENDS, _reached(self.shares)))

    def of(self, grid: Sequence[float]) -> Array:
        """The corrected grid."""
        return np.interp(self.places, _ENDS[1:], [*grid, max(grid[-1], self.longest)])


def _reached(shares: Array) -> Array:
    return np.concatenate([np.zeros(1), np.cumsum(shares)])


def weight(age_s: float) -> float:
    """Of a job that was submitted so long ago."""
    return math.exp(-age_s / MEMORY_S)


class GridCorrection:
    """Weights of the waits by cell; they come in order of time."""

    def __init__(self) -> None:
        self._counts: Array = np.zeros(NUM_CELLS)
        self._at_s = -math.inf

    def learn(self, cells: tuple[int, int], wait_s: float, now_s: float) -> None:
        """One wait became known, in ``cells`` of its forecast: it is shared among them by their width."""
        within = slice(*cells)
        self._counts = self._faded(now_s)
        self._counts[within] += weight(wait_s) * CELL_SHARES[within] / CELL_SHARES[within].sum()
        self._at_s = now_s

    def shares(self, now_s: float, waiting: Array, wider: Array | None = None) -> Array:
        """How many waits fall into each cell, as far as is known now [NUM_CELLS].

        Args:
            waiting: weights of jobs that wait still, by the cell that they have reached [NUM_CELLS].
            wider: shares among more jobs, beside which those of one state count [NUM_CELLS].
        """
        right_ones = RIGHT_ONES * CELL_SHARES if wider is None else RIGHT_ONES_OF_STATE * wider
        counts = self._faded(now_s) + right_ones
        at_risk = np.cumsum((counts + waiting)[::-1])[::-1]
        surviving = np.cumprod(1 - counts / at_risk)
        surviving[-1] = 0.0  # no wait is longer than the last cell
        return np.asarray(-np.diff(surviving, prepend=1.0))

    def _faded(self, now_s: float) -> Array:
        return np.asarray(self._counts * weight(now_s - self._at_s))
