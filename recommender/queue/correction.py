"""What forecasts got wrong lately -> how to read the next ones.

Each wait that becomes known falls into a cell of the forecast that was issued when its job was submitted. If
forecasts are right, every cell gets its share. If a tenth of the cells' width got a third of the waits, the
quantiles are read at other levels until it is a tenth again (recalibration: Kuleshov et al., ICML 2018).

- A job counts by a factor of e less for every two weeks since its submission, and all stand beside a hundred
  waits that were foreseen right. So little or old evidence moves little, and nothing is read beyond the
  grid's last quantile and the longest wait that lasts still.
- Jobs that wait still are censored: they count among those at risk in all cells that their age has reached
  (Kaplan and Meier, JASA 53, 1958). Leaving them out would call every jam short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.core.units import DAY_S
from recommender.queue.grids import CELL_SHARES, LEVELS, NUM_CELLS, Array

# Chosen on the first 60 % of KTH, on MIT and on Alibaba: docs/methods/queue-wait.md.
MEMORY_S = 14 * DAY_S
RIGHT_ONES = 100.0
FORGOTTEN_S = 6 * MEMORY_S
"""After this a job weighs a quarter of a percent, and need not be looked at."""

_ENDS = np.arange(-1.0, NUM_CELLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read grids at a moment.

    Attributes:
        places: where in a grid each of its levels stands [levels].
        longest: the longest wait that lasts still, in log minutes: it ends the cell above a grid.
    """

    places: Array
    longest: float

    def of(self, grid: Sequence[float]) -> Array:
        """The corrected grid."""
        return np.interp(self.places, _ENDS[1:], [*grid, max(grid[-1], self.longest)])


def weight(age_s: float) -> float:
    """Of a job that was submitted so long ago."""
    return math.exp(-age_s / MEMORY_S)


class Correction:
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

    def reading(self, now_s: float, waiting: Array, longest: float) -> Reading:
        """How to read grids now.

        Args:
            now_s: when they are read.
            waiting: weights of jobs that wait still, by the cell that they have reached [NUM_CELLS].
            longest: the longest that one of them has waited, in log minutes.
        """
        counts = self._faded(now_s) + RIGHT_ONES * CELL_SHARES
        at_risk = np.cumsum((counts + waiting)[::-1])[::-1]
        surviving = np.cumprod(1 - counts / at_risk)
        surviving[-1] = 0.0  # no wait is longer than the last cell
        reached: Array = np.concatenate([np.zeros(1), 1 - surviving])
        return Reading(places=np.interp(LEVELS, reached, _ENDS), longest=longest)

    def _faded(self, now_s: float) -> Array:
        return np.asarray(self._counts * weight(now_s - self._at_s))
