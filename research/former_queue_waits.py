"""How waits were foreseen before, to set beside how they are now.

Quantiles of the narrowest bin with forty jobs, and one offset for all bins that follows the last ten jobs or
so (Gibbs and Candes, arXiv 2106.00170). The recommendation drew from a log-normal with the offset of one
moment.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

import numpy as np

from advisor.core.values import Quantiles
from recommender.outcome.draws import waits as drawn
from recommender.queue.grids import LEVELS, Array, grid_of, level_index, to_log_minutes, to_waits_s
from recommender.queue.scoring import FROZEN_EVERY_S, HORIZON_S, TRAINED_SHARE, Score, Tally
from recommender.queue.waits import ALL, FEWEST_JOBS, WINDOW_JOBS, Bin, JobLog, QueuedJob, bin_of, widened

ENOUGH_JOBS = 40
STEPS = np.array([0.05, 0.1])
SHARES_ABOVE = np.array([0.5, 0.1])
MEDIAN_AND_P90 = [level_index(0.5), level_index(0.9)]
NORMAL_AT_LEVELS = np.array([NormalDist().inv_cdf(level) for level in LEVELS])


class _Former:
    def __init__(self) -> None:
        self.offsets: Array = np.zeros(2)
        self._bins: dict[Bin, list[float]] = {}
        self._window: deque[tuple[float, Bin]] = deque()
        self._queued: list[tuple[float, int, QueuedJob, Array | None]] = []

    def quantiles(self, which: Bin) -> Array | None:
        bins = (self._bins.get(key, []) for key in widened(which) if key != ALL)
        ordered = next((one for one in bins if len(one) >= ENOUGH_JOBS), self._bins.get(ALL, []))
        return np.array(grid_of(ordered))[MEDIAN_AND_P90] if len(ordered) >= FEWEST_JOBS else None

    def corrected(self, quantiles: Array) -> Array:
        """The grid that the recommendation drew from."""
        p50_s, p90_s = to_waits_s(np.maximum(quantiles + self.offsets, 0)).tolist()
        drawn_s = drawn(Quantiles(p50=p50_s, p90=max(p50_s, p90_s)), NORMAL_AT_LEVELS)
        return np.array([to_log_minutes(wait_s) for wait_s in drawn_s])

    def submit(self, job: QueuedJob, number: int) -> Array | None:
        while self._queued and self._queued[0][0] <= job.submit_s:
            self._learn(*heapq.heappop(self._queued)[2:])
        expected = self.quantiles(bin_of(job))
        heapq.heappush(self._queued, (job.start_s, number, job, expected))
        return expected

    def _learn(self, job: QueuedJob, expected: Array | None) -> None:
        wait, which = to_log_minutes(job.wait_s), bin_of(job)
        if expected is not None:
            self.offsets = self.offsets + STEPS * ((wait > expected + self.offsets) - SHARES_ABOVE)
        self._window.append((wait, which))
        for key in widened(which):
            insort(self._bins.setdefault(key, []), wait)
        if len(self._window) > WINDOW_JOBS:
            oldest, which = self._window.popleft()
            for key in widened(which):
                self._bins[key].pop(bisect_left(self._bins[key], oldest))


def former_scores(log: JobLog) -> tuple[Score, Score]:
    """Of the same jobs as `recommender.queue.scoring.check`: online, and frozen for a week."""
    first = math.floor(len(log.jobs) * TRAINED_SHARE)
    submits_s = np.array([job.submit_s for job in log.jobs[first:]])
    online, frozen, former = Tally(submits_s), Tally(submits_s), _Former()
    freeze_s = submits_s[0] - HORIZON_S
    for index, job in enumerate(log.jobs):
        expected = former.submit(job, index)
        if expected is None:
            continue
        if job.submit_s >= freeze_s:
            freeze_s = job.submit_s + FROZEN_EVERY_S
            begin, end = np.searchsorted(submits_s, [job.submit_s, job.submit_s + HORIZON_S]).tolist()
            coming = log.jobs[first + begin : first + end]
            _add(frozen, coming, _of_now(former, coming))
        if index >= first:
            _add(online, [job], [former.corrected(expected)])
    return online.score(), frozen.score()


def _of_now(former: _Former, coming: Sequence[QueuedJob]) -> list[Array]:
    @cache
    def grid(which: Bin) -> Array:
        expected = former.quantiles(which)
        assert expected is not None
        return former.corrected(expected)

    return [grid(bin_of(job)) for job in coming]


def _add(tally: Tally, jobs: Sequence[QueuedJob], grids: Sequence[Array]) -> None:
    if not jobs:
        return
    minutes = np.array([to_log_minutes(job.wait_s) for job in jobs])
    tally.add(minutes, np.array([job.submit_s for job in jobs]), np.array(grids))
