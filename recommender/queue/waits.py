"""How long a job waits in a cluster's queue, from a log of jobs: conditional quantiles, corrected online.

- Waits y are counted in log minutes, ln(1 + minutes): errors are relative, and no wait at all is 0.
- Quantiles of the last 8,000 waits by size x requested walltime x queue. Where fewer than 40 jobs are alike,
  the queue is dropped, then the walltime, then the size.
- A wait becomes known when its job starts. Then the correction of all quantiles moves by online conformal
  inference (Gibbs and Candes, arXiv 2106.00170), with the q that was expected when the job was submitted:
  ``o90 += 0.1 * (1[y > q90 + o90] - 0.1)``, ``o50 += 0.05 * (1[y > q50 + o50] - 0.5)``.

How well it does on real logs: docs/methods/queue-wait.md.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from advisor.core.units import DAY_S, HOUR_S, MINUTE_S
from advisor.core.values import Quantiles
from recommender.queue.job_log import QueuedJob

WINDOW_JOBS = 8000
ENOUGH_JOBS = 40
FEWEST_JOBS = 10  # of all: below 9 the 90 % quantile lies beyond the longest wait
STEP_P50, STEP_P90 = 0.05, 0.1

WALLTIME_EDGES_S = (600.0, HOUR_S, 4 * HOUR_S, 12 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S)
WALLTIME_BINS = ("<=10m", "<=1h", "<=4h", "<=12h", "<=1d", "<=3d", "<=7d", ">7d")
NO_WALLTIME = "none"

Bin = tuple[str | None, str | None, str | None]
"""Size, walltime and queue; None is any."""
ALL: Bin = (None, None, None)


def size_bin(size: float) -> str:
    """Powers of two: ``"1"``, ``"2..3"``, ``"4..7"``; ``"0"``, and ``"<1"`` for parts of a GPU."""
    if size < 1:
        return "<1" if size > 0 else "0"
    low = 2 ** math.floor(math.log2(size))
    return "1" if low == 1 else f"{low}..{2 * low - 1}"


def walltime_bin(walltime_s: float) -> str:
    """``"<=12h"`` and the like; ``"none"`` for a job that asked for none (-1)."""
    return NO_WALLTIME if walltime_s < 0 else WALLTIME_BINS[bisect_left(WALLTIME_EDGES_S, walltime_s)]


def fallbacks(size: str | None, walltime: str | None, queue: str | None) -> tuple[Bin, ...]:
    """Bins to try, the narrowest first; what is unknown (None) is any from the start."""
    steps = ((size, walltime, queue), (size, walltime, None), (size, None, None), ALL)
    return tuple(dict.fromkeys(steps))


def to_log_minutes(wait_s: float) -> float:
    """ln(1 + minutes)."""
    return math.log1p(wait_s / MINUTE_S)


def to_wait_s(log_minutes: float) -> float:
    """Its inverse; a corrected quantile below nothing is nothing."""
    return math.expm1(max(log_minutes, 0.0)) * MINUTE_S


def quantile(ordered: Sequence[float], probability: float) -> float:
    """By Weibull's plotting positions, p * (n + 1), between the least and the greatest value."""
    position = probability * (len(ordered) + 1) - 1
    below = min(max(math.floor(position + 1e-9), 0), len(ordered) - 1)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low + min(max(position - below, 0.0), 1.0) * (high - low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Quantiles of the jobs alike before the correction, in log minutes."""

    p50: float
    p90: float


class Waits:
    """What a scheduler's users know at each moment; jobs come in order of submission."""

    def __init__(self) -> None:
        self.offset_p50 = 0.0
        self.offset_p90 = 0.0
        self._bins: dict[Bin, list[float]] = {}
        self._window: deque[tuple[float, tuple[Bin, ...]]] = deque()
        self._queued: list[tuple[float, int, float, QueuedJob, Expected | None]] = []
        self._num_submitted = 0

    def expect(self, job: QueuedJob) -> Expected | None:
        """The quantiles of jobs like this one; None before ten waits are known."""
        bins = fallbacks(size_bin(job.size), walltime_bin(job.walltime_s), job.queue)
        alike = next((b for b in bins if len(self._bins.get(b, ())) >= ENOUGH_JOBS), ALL)
        return self.expect_in(alike)

    def expect_in(self, which: Bin) -> Expected | None:
        """The quantiles of one bin; None where fewer than ten waits are known."""
        ordered = self._bins.get(which, ())
        if len(ordered) < FEWEST_JOBS:
            return None
        return Expected(p50=quantile(ordered, 0.5), p90=quantile(ordered, 0.9))

    def corrected(self, expected: Expected) -> Quantiles:
        """Seconds, with the correction of this moment; the median never above the 90 % quantile."""
        p50 = to_wait_s(expected.p50 + self.offset_p50)
        return Quantiles(p50=p50, p90=max(p50, to_wait_s(expected.p90 + self.offset_p90)))

    def submit(self, job: QueuedJob) -> Expected | None:
        """A job enters the queue at its time of submission; what is expected of it."""
        self.advance(job.submit_s)
        expected = self.expect(job)
        entry = (job.start_s, self._num_submitted, to_log_minutes(job.wait_s), job, expected)
        heapq.heappush(self._queued, entry)
        self._num_submitted += 1
        return expected

    def advance(self, now_s: float) -> None:
        """Learn the waits of all jobs that have started by now."""
        while self._queued and self._queued[0][0] <= now_s:
            _, _, wait, job, expected = heapq.heappop(self._queued)
            if expected is not None:
                self.offset_p90 += STEP_P90 * ((wait > expected.p90 + self.offset_p90) - 0.1)
                self.offset_p50 += STEP_P50 * ((wait > expected.p50 + self.offset_p50) - 0.5)
            self._remember(wait, job)

    def bins(self) -> Iterator[tuple[Bin, int]]:
        """Each bin with enough jobs, and all jobs; with their number."""
        for which, ordered in self._bins.items():
            if which == ALL or len(ordered) >= ENOUGH_JOBS:
                yield which, len(ordered)

    def _remember(self, wait: float, job: QueuedJob) -> None:
        bins = _bins_of(job)
        self._window.append((wait, bins))
        for which in bins:
            insort(self._bins.setdefault(which, []), wait)
        if len(self._window) > WINDOW_JOBS:
            oldest, bins = self._window.popleft()
            for which in bins:
                ordered = self._bins[which]
                ordered.pop(bisect_left(ordered, oldest))


def _bins_of(job: QueuedJob) -> tuple[Bin, ...]:
    """All bins it can be found in, also by people who do not tell walltime or queue."""
    size, walltime = size_bin(job.size), walltime_bin(job.walltime_s)
    return (*fallbacks(size, walltime, job.queue), (size, None, job.queue))


def replay(jobs: Iterable[QueuedJob], waits: Waits) -> Iterator[tuple[QueuedJob, Expected | None]]:
    """Each job at its submission, with what was expected of it then. The order given does not matter."""
    for job in sorted(jobs):
        yield job, waits.submit(job)
