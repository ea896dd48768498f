"""How long a job waits in a cluster's queue, as far as is known at a moment of a log.

- A *bin* holds waits of jobs of one size x requested walltime x queue, among the last 8,000 that count. A bin
  of n waits has the quantiles of these with the weight n, and those of the next wider bin (without the queue,
  then without the walltime, then of all jobs) with the weight 40.
- A correction for all bins follows what earlier forecasts got wrong, and one for each class of jobs by how
  many others they find waiting in their queue, and within it by what their user's own jobs tell.

How well it does on real logs: docs/methods/queue-wait.md.

A cluster that states no wait and has no log is assumed to let jobs wait as other clusters did.
"""

import heapq
import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import NamedTuple

import numpy as np

from advisor.core.findings import Finding
from advisor.core.findings.about_options import QueueAssumed, QueueShared, RemovedByQueue
from advisor.core.gpus import catalog_path
from advisor.core.units import DAY_S, HOUR_S, MINUTE_S
from advisor.core.values import AssumedWait, Limited, QueueLimit
from advisor.pricing.instance_types import read_as
from recommender.queue import grids

GPUS = "gpus"
"""The unit of sizes that waits for GPUs are learned from."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class QueuedJob:
    """A job; times in seconds of one clock."""

    submit_s: float
    """When it entered the queue: not before it could have started."""
    start_s: float
    """Infinite if it waits still."""
    size: float
    """What it asked for, in the log's ``size_unit``."""
    walltime_s: float
    """The run time it asked for; -1 if it asked for none."""
    queue: str
    """Name of the queue or partition, empty where the log has none."""
    user: str = ""
    """Who submitted it, empty where the log has none."""
    run_s: float = -1.0
    """How long it ran; -1 if the log does not tell."""

    @property
    def wait_s(self) -> float:
        """Time in the queue."""
        return self.start_s - self.submit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """Jobs in order of submission."""

    jobs: tuple[QueuedJob, ...]
    """Those that started."""
    size_unit: str
    """What sizes count: ``gpus``, ``nodes`` or ``cores``."""
    left_out: Mapping[str, int]
    """Number of jobs by the reason they do not count for."""
    waiting: tuple[QueuedJob, ...] = ()
    """Those that waited when the log was written."""

    @property
    def end_s(self) -> float:
        """The last moment that the log knows of, before which it was not written."""
        return max([job.start_s for job in self.jobs] + [job.submit_s for job in self.waiting])


def is_of_now(end_s: float, now_s: float) -> bool:
    """Whether a log with such an end shows the queue as it is: it is at most an hour old."""
    return 0 <= now_s - end_s <= HOUR_S


# A user who submits two hundred equal jobs in a minute tells about the queue once. Jobs of one user, size,
# walltime and queue that were submitted within five minutes of each other, and started so, count as one. A
# job of the same burst that starts later met another queue, and counts.

TOGETHER_S = 5 * MINUTE_S

_Kind = tuple[str, float, float, str]


class Bursts:
    """Which jobs tell something new by starting; they come in order of their start."""

    def __init__(self) -> None:
        self._counted: dict[_Kind, list[QueuedJob]] = defaultdict(list)

    def is_new(self, job: QueuedJob) -> bool:
        """Whether it counts: no job like it that counts was submitted and started together with it."""
        kind = _kind(job)
        recent = [one for one in self._counted[kind] if job.start_s - one.start_s <= TOGETHER_S]
        is_new = all(abs(job.submit_s - one.submit_s) > TOGETHER_S for one in recent)
        self._counted[kind] = [*recent, job] if is_new else recent
        return is_new


def that_count(waiting: Iterable[QueuedJob]) -> list[QueuedJob]:
    """Of jobs that wait still, the eldest of each burst."""
    counted_s: dict[_Kind, float] = {}
    counting = []
    for job in sorted(waiting):
        kind = _kind(job)
        if job.submit_s - counted_s.get(kind, float("-inf")) > TOGETHER_S:
            counted_s[kind] = job.submit_s
            counting.append(job)
    return counting


def _kind(job: QueuedJob) -> _Kind:
    return job.user, job.size, job.walltime_s, job.queue


WINDOW_JOBS = 8000
WIDER_BIN_JOBS = 40
FEWEST_JOBS = 10  # of a bin: below 9 the 90 % quantile lies beyond the longest wait

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


def bin_of(job: QueuedJob) -> Bin:
    """The narrowest bin of a job."""
    return size_bin(job.size), walltime_bin(job.walltime_s), job.queue


def widened(which: Bin) -> tuple[Bin, ...]:
    """A bin and the wider ones that hold it; what is unknown (None) is any from the start."""
    size, walltime, queue = which
    steps = ((size, walltime, queue), (size, walltime, None), (size, None, None), ALL)
    return tuple(dict.fromkeys(steps))


BACKLOG_EDGES = (0, 2, 8, 30)
"""The most jobs that wait in a queue, of each class but the last."""
BACKLOGS = range(len(BACKLOG_EDGES) + 1)


def backlog_class(num_waiting: int) -> int:
    """The class of a job that finds so many others waiting in its queue, as ``squeue`` counts them."""
    return bisect_left(BACKLOG_EDGES, num_waiting)


# What a user's own jobs tell of how long the next one waits. A user's limits, priority and kind of jobs are
# in no column of a log. But the waits of the jobs before show them: how far up its own forecast the last one
# that started came, and the eldest that waits still.

RECENT_S = 7 * DAY_S
"""A start tells for so long."""
LEVEL_EDGES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""The highest level of each class but the last, above one for those of whom nothing is known."""

Grid = Sequence[float] | None


class OwnJobs:
    """The jobs of each user: those that wait, and the last that started."""

    def __init__(self) -> None:
        # By number, so that the first is the eldest; with its submission and its forecast.
        self._waiting: dict[str, dict[int, tuple[float, Grid]]] = {}
        self._started: dict[str, tuple[float, float]] = {}

    def enter(self, user: str, number: int, submit_s: float, grid: Grid) -> None:
        """A job is submitted, with a number that counts them."""
        self._waiting.setdefault(user, {})[number] = submit_s, grid

    def start(self, user: str, number: int, start_s: float) -> None:
        """It starts; starts come in order of time."""
        submit_s, grid = self._waiting[user].pop(number)
        if grid is not None:
            first, last = grids.cells_of(grid, grids.to_log_minutes(start_s - submit_s))
            self._started[user] = start_s, (grids.CELL_ENDS[first] + grids.CELL_ENDS[last]) / 2

    def class_of(self, user: str, now_s: float) -> int | None:
        """The class by the higher of the two levels; None in a log without users."""
        if not user:
            return None
        start_s, level = self._started.get(user, (0.0, -1.0))
        if now_s - start_s > RECENT_S:
            level = -1.0
        for submit_s, grid in self._waiting.get(user, {}).values():
            if grid is not None:
                reached = bisect_left(grid, grids.to_log_minutes(now_s - submit_s))
                level = max(level, grids.CELL_ENDS[reached])
            break
        return 0 if level < 0 else 1 + bisect_left(LEVEL_EDGES, level)


class QueueState(NamedTuple):
    """What a job finds at its submission."""

    backlog: int
    """The class by the others that wait in its queue."""
    own: int | None = None
    """The class by the other jobs of its user, None where nobody knows whose it is."""


class Queued(NamedTuple):
    """A job at its submission: the grid that is expected of it, uncorrected, and what it finds."""

    job: QueuedJob
    grid: list[float] | None
    state: QueueState


class Waits:
    """What a scheduler's users know at each moment; jobs come in order of submission."""

    def __init__(self, foreseen_from_s: float = -math.inf) -> None:
        """Args: nothing is expected of jobs submitted before, and nothing learned for the correction."""
        self._foreseen_from_s = foreseen_from_s
        self._bins: dict[Bin, list[float]] = {}
        self._window: deque[tuple[float, QueuedJob]] = deque()
        self._bursts = Bursts()
        self._correction = grids.GridCorrection()
        self._by_state: dict[QueueState, grids.GridCorrection] = defaultdict(grids.GridCorrection)
        self.own_jobs = OwnJobs()
        self._num_waiting: Counter[str] = Counter()
        # Those that wait, by their start: when it will be, and their number.
        self._queued: list[tuple[float, int, Queued]] = []
        self._num_submitted = 0

    def expect(self, which: Bin) -> list[float] | None:
        """The grid of a bin before the correction; None before ten waits are known."""
        expected: list[float] | None = None
        for key in reversed(widened(which)):
            ordered = self._bins.get(key, ())
            if len(ordered) < FEWEST_JOBS:
                break
            own = grids.grid_of(ordered)
            share = 1.0 if expected is None else len(ordered) / (len(ordered) + WIDER_BIN_JOBS)
            expected = [
                share * mine + (1 - share) * wider for mine, wider in zip(own, expected or own, strict=True)
            ]
        return expected

    def reading(self, now_s: float, state: QueueState | None = None) -> grids.GridReading:
        """How to read grids at this moment; ``advance`` comes first. A later job has no state."""
        waiting, longest = self._still_waiting(now_s)
        shares = self._correction.shares(now_s, waiting)
        for wider in _states(state):
            alike, _ = self._still_waiting(now_s, wider)
            shares = self._by_state[wider].shares(now_s, alike, wider=shares)
        return grids.GridReading(shares=shares, longest=longest)

    def _still_waiting(self, now_s: float, state: QueueState | None = None) -> tuple[grids.Array, float]:
        """Weights of jobs that wait, by the cell that they have reached, and the longest that one has."""
        expected = {
            queued.job: queued.grid
            for _, _, queued in self._queued
            if queued.grid is not None and (state is None or state in _states(queued.state))
        }
        waiting, longest = np.zeros(grids.NUM_CELLS), 0.0
        for job in that_count(expected):
            age_s = now_s - job.submit_s
            age = grids.to_log_minutes(age_s)
            waiting[bisect_left(expected[job], age)] += grids.weight(age_s)
            longest = max(longest, age)
        return waiting, longest

    @property
    def num_waiting(self) -> dict[str, int]:
        """Jobs that wait, by queue."""
        return {queue: count for queue, count in self._num_waiting.items() if count}

    def submit(self, job: QueuedJob) -> Queued:
        """A job enters the queue at its time of submission."""
        self.advance(job.submit_s)
        expected = self.expect(bin_of(job)) if job.submit_s >= self._foreseen_from_s else None
        own = self.own_jobs.class_of(job.user, job.submit_s)
        queued = Queued(job, expected, QueueState(backlog_class(self._num_waiting[job.queue]), own))
        heapq.heappush(self._queued, (job.start_s, self._num_submitted, queued))
        self.own_jobs.enter(job.user, self._num_submitted, job.submit_s, expected)
        self._num_submitted += 1
        self._num_waiting[job.queue] += 1
        return queued

    def advance(self, now_s: float) -> None:
        """Learn the waits of all jobs that have started by now."""
        while self._queued and self._queued[0][0] <= now_s:
            start_s, number, (job, expected, state) = heapq.heappop(self._queued)
            self._num_waiting[job.queue] -= 1
            self.own_jobs.start(job.user, number, start_s)
            if not self._bursts.is_new(job):
                continue
            wait = grids.to_log_minutes(job.wait_s)
            if expected is not None:
                for correction in (self._correction, *(self._by_state[wider] for wider in _states(state))):
                    correction.learn(grids.cells_of(expected, wait), job.wait_s, start_s)
            self._remember(wait, job)

    def bins(self) -> Iterator[tuple[Bin, int]]:
        """Each bin with enough jobs; with their number."""
        for which, ordered in self._bins.items():
            if len(ordered) >= FEWEST_JOBS:
                yield which, len(ordered)

    def _remember(self, wait: float, job: QueuedJob) -> None:
        self._window.append((wait, job))
        for which in _bins_of(job):
            insort(self._bins.setdefault(which, []), wait)
        if len(self._window) > WINDOW_JOBS:
            oldest, job = self._window.popleft()
            for which in _bins_of(job):
                ordered = self._bins[which]
                ordered.pop(bisect_left(ordered, oldest))


def _states(state: QueueState | None) -> tuple[QueueState, ...]:
    """What is known of a state, the widest first."""
    if state is None:
        return ()
    return (QueueState(state.backlog), state) if state.own is not None else (state,)


def _bins_of(job: QueuedJob) -> tuple[Bin, ...]:
    """All bins it can be found in, also by people who do not tell walltime or queue."""
    narrowest = bin_of(job)
    return (*widened(narrowest), (narrowest[0], None, job.queue))


def replay(jobs: Iterable[QueuedJob], waits: Waits) -> Iterator[Queued]:
    """Each job at its submission, with what was known of it then. The order given does not matter."""
    for job in sorted(jobs):
        yield waits.submit(job)


WAITS_FILE = "queue_waits.csv"
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
SIZES = {"1": 1.0, "2..8": 8.0, ">8": math.inf}
"""The most GPUs of each class."""
WALLTIMES = {"<=4h": 4 * HOUR_S, "<=1d": DAY_S, ">1d": math.inf}
"""The longest run time that jobs of each class ask for."""
ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledWait:
    """Waits of jobs of a class at each of `LEVELS`, each cluster's counting alike; a row of the file."""

    size: str
    walltime: str
    p10_s: float
    p25_s: float
    p50_s: float
    p75_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    num_logs: int
    num_jobs: int
    source: str
    as_of: date

    @property
    def wait_s(self) -> AssumedWait:
        """With all of its quantiles."""
        waits_s = (self.p10_s, self.p25_s, self.p50_s, self.p75_s, self.p90_s, self.p95_s, self.p99_s)
        return AssumedWait(p50=self.p50_s, p90=self.p90_s, levels=LEVELS, waits_s=waits_s)


def class_of(size: float, walltime_s: float | None) -> tuple[str, str]:
    """The class of a job by its GPUs and the run time that it asks for, None where that is unknown."""
    of_size = next(name for name, most in SIZES.items() if size <= most)
    if walltime_s is None or walltime_s < 0:
        return of_size, ANY
    return of_size, next(name for name, most in WALLTIMES.items() if walltime_s <= most)


def assumed_wait(num_gpus: int, walltime_s: float | None) -> tuple[AssumedWait, Finding]:
    """What a job is assumed to wait, and what that rests on.

    Raises CatalogError: the file is missing or broken.
    """
    size, walltime = class_of(num_gpus, walltime_s)
    pooled = _shipped()[size, walltime]
    note = QueueAssumed(
        num_jobs=pooled.num_jobs,
        num_logs=pooled.num_logs,
        size=size,
        walltime=None if walltime == ANY else walltime,
    )
    return pooled.wait_s, note


@cache
def _shipped() -> Mapping[tuple[str, str], PooledWait]:
    return {
        (pooled.size, pooled.walltime): pooled for pooled in read_as(catalog_path(WAITS_FILE), PooledWait)
    }


# What a scheduler's limits mean for a job: where it never starts, and whose jobs it waits for.


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a job asks its scheduler for."""

    num_gpus: int
    num_nodes: int = 1
    """At least."""
    time_s: float | None = None
    """None if unknown, which no limit of time judges."""

    def of(self, what: Limited) -> float:
        """As much as is known."""
        gpus, time_s = float(self.num_gpus), self.time_s or 0.0
        known = {
            Limited.GPUS: gpus,
            Limited.NODES: float(self.num_nodes),
            Limited.TIME: time_s,
            Limited.GPU_TIME: gpus * time_s,
            Limited.JOBS: 1.0,
        }
        return known[what]


def forbidding(limits: Sequence[QueueLimit], job: Asked) -> Iterator[RemovedByQueue]:
    """Limits that the job is above, alone: it never starts."""
    for one in limits:
        if job.of(one.what) > one.most:
            yield RemovedByQueue(
                of=one.of, name=one.name, what=one.what.value, most=one.most, asked=job.of(one.what)
            )


def delaying(limits: Sequence[QueueLimit], job: Asked) -> Iterator[QueueShared]:
    """Limits that it is above with the jobs that run now: it waits for these."""
    for one in limits:
        asked = job.of(one.what)
        if one.in_use and asked <= one.most < one.in_use + asked:
            yield QueueShared(
                of=one.of, name=one.name, what=one.what.value, most=one.most, asked=asked, in_use=one.in_use
            )
