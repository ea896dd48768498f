"""How well quantiles foresaw waits: coverage with its standard error, and pinball loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from advisor.core.units import DAY_S
from advisor.core.values import Quantiles
from recommender.queue.grids import CELL_ENDS, Array, cells_of, level_index

_P50, _P90 = level_index(0.5), level_index(0.9)
_TAILS = np.array([0.1, 0.99])
# A billionth is no miss: quantiles went through a logarithm.
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The 10 % and the 99 % quantile."""

    p10: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one way to foresee waits did.

    Attributes:
        coverage: share of the waits at or below each quantile; 0.5 and 0.9 are perfect.
        coverage_se: standard error of ``coverage``, days being independent; None for a single day.
        tails: as ``coverage``; waits that equal a quantile count in part, as many as the levels of all
            quantiles that they equal leave below it.
        pinball: mean loss of each quantile in log minutes; less is better.
    """

    coverage: Quantiles
    coverage_se: Quantiles | None
    tails: Tails
    pinball: Quantiles


class Tally:
    """Sums by day, so that no job need be kept."""

    def __init__(self, submits_s: Array) -> None:
        """Args: all submissions that may come, in order."""
        self._begin_s = submits_s[0]
        self._sums: Array = np.zeros((int((submits_s[-1] - submits_s[0]) // DAY_S) + 1, 7))

    def add(self, waits: Array, submits_s: Array, grids: Array) -> None:
        """Waits [n] in log minutes, when their jobs were submitted [n], and what was foreseen [n, levels]."""
        foreseen = grids[:, [_P50, _P90]]
        miss = waits[:, None] - foreseen
        losses = np.maximum(np.array([0.5, 0.9]) * miss, np.array([-0.5, -0.1]) * miss)
        rows = np.hstack([np.ones((len(waits), 1)), miss <= _EQUAL, losses, _below_tails(waits, grids)])
        days = ((submits_s - self._begin_s) // DAY_S).astype(int)
        np.add.at(self._sums, days, rows)

    def score(self) -> Score:
        """Of all that was added; one wait at least."""
        sums = self._sums[self._sums[:, 0] > 0]
        count = sums[:, 0].sum()
        p50, p90, loss50, loss90, p10, p99 = (sums[:, 1:].sum(axis=0) / count).tolist()
        errors = [_standard_error(sums[:, 0], sums[:, column]) for column in (1, 2)]
        return Score(
            coverage=Quantiles(p50=p50, p90=p90),
            coverage_se=None if len(sums) < 2 else Quantiles(p50=errors[0], p90=errors[1]),
            tails=Tails(p10=p10, p99=p99),
            pinball=Quantiles(p50=loss50, p90=loss90),
        )


def pinball(value: float, quantile: float, probability: float) -> float:
    """Loss that the true quantile makes least (Koenker and Bassett 1978).

    >>> pinball(3.0, 1.0, 0.9), round(pinball(1.0, 3.0, 0.9), 12)
    (1.8, 0.2)
    """
    miss = value - quantile
    return max(probability * miss, (probability - 1) * miss)


def _below_tails(waits: Array, grids: Array) -> Array:
    """How much of each wait lies below the tails [n, 2]."""
    cells = [cells_of(grid, wait) for grid, wait in zip(grids.tolist(), waits.tolist(), strict=True)]
    low, high = (np.array(CELL_ENDS)[list(ends)][:, None] for ends in zip(*cells, strict=True))
    return np.asarray(np.clip((_TAILS - low) / (high - low), 0, 1))


def _standard_error(counts: Array, covered: Array) -> float:
    """Of a share whose days are drawn whole: the ratio estimator of cluster samples (Cochran 1977)."""
    num_days = len(counts)
    if num_days < 2:
        return math.nan
    residuals = covered - counts * covered.sum() / counts.sum()
    scale = num_days / (num_days - 1)
    return math.sqrt(scale * float(residuals @ residuals)) / float(counts.sum())
