"""The waits of a whole log: quantiles by bin, and which of them answers a question."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from advisor.core.errors import InputError, did_you_mean
from advisor.core.findings import Finding
from advisor.core.findings.about_options import WaitUnsure
from advisor.core.units import MINUTE_S
from advisor.core.values import QueueLimit
from recommender.queue import grids
from recommender.queue.waits import (
    ALL,
    BACKLOGS,
    FEWEST_JOBS,
    GPUS,
    WIDER_BIN_JOBS,
    Bin,
    JobLog,
    QueueState,
    Waits,
    backlog_class,
    is_of_now,
    replay,
    size_bin,
    walltime_bin,
    widened,
)

P50, P90 = grids.level_index(0.5), grids.level_index(0.9)
SURGE_TIMES = 2.0
"""Waits at the p90 over those that older jobs foretell. In quiet logs the ratio is 0.4 to 1.4."""
_LEAST_SURGE_S = 10 * MINUTE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBin:
    """Waits of jobs that are alike, corrected; ``size``, ``walltime`` or ``queue`` None means any."""

    size: str | None
    walltime: str | None
    queue: str | None
    num_jobs: int
    """Of its own, a burst of jobs counted once."""
    p50_s: float
    p90_s: float
    waits_s: tuple[float, ...]
    """Quantiles at the ``levels`` of the whole."""

    @property
    def key(self) -> Bin:
        """Where it is looked up."""
        return self.size, self.walltime, self.queue


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitQuantiles:
    """What a log tells of the waits at its end; no rows of it."""

    size_unit: str
    """What sizes count: ``gpus``, ``nodes`` or ``cores``."""
    num_jobs: int
    """Jobs that started."""
    num_waiting: int
    """Jobs that waited still at the end."""
    left_out: Mapping[str, int]
    """Number of jobs by the reason they do not count for."""
    queues: tuple[str, ...]
    """Names of all queues of the log."""
    first_submit_s: float
    """Seconds since 1970, or of the log's own clock."""
    last_submit_s: float
    offset_p50: float
    """How far the correction moves the median of all jobs, in log minutes."""
    offset_p90: float
    """As ``offset_p50``."""
    levels: tuple[float, ...]
    """Probabilities of the bins' quantiles."""
    waiting: Mapping[str, int]
    """Jobs that waited at the end, by queue."""
    end_s: float
    """When the log was written, as far as it shows."""
    backlog_levels: tuple[tuple[float, ...], ...]
    """At which levels the quantiles of a bin are those of a job that finds 0, 1 to 2, 3 to 8, ... others
    waiting in its queue, submitted by the user of `fit` [classes of `waits.BACKLOGS`, levels]."""
    bins: tuple[WaitBin, ...]
    limits: Mapping[str, tuple[QueueLimit, ...]] = field(default_factory=dict)
    """Of jobs of whoever asked a live scheduler, by queue; ``""`` is the default one. None of a log."""

    def of(
        self,
        *,
        size: float,
        walltime_s: float | None = None,
        queue: str | None = None,
        num_waiting: int | None = None,
        waited_s: float | None = None,
    ) -> WaitBin:
        """The narrowest bin with enough jobs like this one, and what the queue's present state makes of it.

        Args:
            size: in ``size_unit``.
            walltime_s: the run time it will ask for; None if unknown.
            queue: where it will wait; None if unknown.
            num_waiting: others that waited there when it was submitted; None if it is not submitted yet.
            waited_s: how long it has waited; waits are then those still to come.

        Raises InputError: the log knows no such queue.
        """
        if queue is not None and queue not in self.queues:
            known = ", ".join(name for name in self.queues if name) or "none"
            hint = did_you_mean(queue, self.queues)
            raise InputError(f"the log has no queue {queue!r}.{hint} It has: {known}.")
        by_key = {one.key: one for one in self.bins}
        walltime = None if walltime_s is None else walltime_bin(walltime_s)
        alike = next(by_key[key] for key in widened((size_bin(size), walltime, queue)) if key in by_key)
        return alike if num_waiting is None and waited_s is None else self._now(alike, num_waiting, waited_s)

    def waiting_now(self, queue: str | None, now_s: float) -> int | None:
        """Jobs that wait in a queue, or in the only one; None if unknown, or the log is over an hour old."""
        is_known = queue is not None or len(self.queues) == 1
        if not (is_known and is_of_now(self.end_s, now_s)):
            return None
        return self.waiting.get(self.queues[0] if queue is None else queue, 0)

    def _now(self, alike: WaitBin, num_waiting: int | None, waited_s: float | None) -> WaitBin:
        grid = np.log1p(np.array(alike.waits_s) / MINUTE_S)
        if num_waiting is not None:
            grid = grids.at_levels(grid, np.array(self.backlog_levels[backlog_class(num_waiting)]))
        if waited_s is not None:
            grid = grids.after(grid, grids.to_log_minutes(waited_s))
        left_s = np.maximum(grids.to_waits_s(grid) - (waited_s or 0.0), 0.0)
        return _wait_bin(alike.key, alike.num_jobs, left_s)


def fit(log: JobLog, user: str | None = None) -> WaitQuantiles:
    """What is known at the end of the log.

    Args:
        user: who submits a job at this end; what the others of theirs tell counts, where the log knows this
            user.

    Raises InputError: fewer than ten jobs, or than ten that are no burst of each other.
    """
    if len(log.jobs) < FEWEST_JOBS:
        raise _too_few(f"the log has {len(log.jobs)} jobs that started")
    waits = Waits(foreseen_from_s=log.end_s - grids.FORGOTTEN_S)
    deque(replay((*log.jobs, *log.waiting), waits), maxlen=0)
    waits.advance(log.end_s)
    reading = waits.reading(log.end_s)
    is_known = any(job.user == user for job in (*log.jobs, *log.waiting))
    own = waits.own_jobs.class_of(user, log.end_s) if user and is_known else None
    states = (QueueState(backlog, own) for backlog in BACKLOGS)
    everything = waits.expect(ALL)
    if everything is None:
        raise _too_few(f"the log has {len(log.jobs)} jobs that started, almost all of one burst")
    moved = reading.of(everything) - np.array(everything)
    # All jobs first, then the largest bins of what is alike.
    counts = sorted(
        waits.bins(), key=lambda item: (item[0] != ALL, [name or "" for name in item[0]], -item[1])
    )
    grid_of = {which: grid for which, _ in counts if (grid := waits.expect(which)) is not None}
    bins = [_wait_bin(which, count, grids.to_waits_s(reading.of(grid_of[which]))) for which, count in counts]
    return WaitQuantiles(
        size_unit=log.size_unit,
        num_jobs=len(log.jobs),
        num_waiting=len(log.waiting),
        left_out=log.left_out,
        queues=tuple(sorted({job.queue for job in log.jobs})),
        first_submit_s=log.jobs[0].submit_s,
        last_submit_s=log.jobs[-1].submit_s,
        offset_p50=float(moved[P50]),
        offset_p90=float(moved[P90]),
        levels=grids.LEVELS,
        waiting=waits.num_waiting,
        end_s=log.end_s,
        backlog_levels=tuple(
            tuple(reading.levels_of(waits.reading(log.end_s, state)).tolist()) for state in states
        ),
        bins=tuple(bins),
    )


def _too_few(what: str) -> InputError:
    return InputError(
        f"{what}: quantiles need at least {FEWEST_JOBS}, and are worth something from {WIDER_BIN_JOBS}."
        " Export a longer time."
    )


def _wait_bin(which: Bin, num_jobs: int, waits_s: grids.Array) -> WaitBin:
    # Means of equal quantiles differ by a rounding.
    rising = tuple(np.maximum.accumulate(waits_s).tolist())
    size, walltime, queue = which
    return WaitBin(
        size=size,
        walltime=walltime,
        queue=queue,
        num_jobs=num_jobs,
        p50_s=rising[P50],
        p90_s=rising[P90],
        waits_s=rising,
    )


def warnings_of(fitted: WaitQuantiles, alike: WaitBin, size: float) -> tuple[Finding, ...]:
    """What makes an answer doubtful: no GPUs or few such jobs in the log, or a surge at its end."""
    warnings: list[Finding] = []
    # How many times as long as before all jobs wait at the p90.
    now_s = next(each.p90_s for each in fitted.bins if each.key == ALL)
    before = np.array(grids.to_log_minutes(now_s) - fitted.offset_p90)
    times = now_s / max(float(grids.to_waits_s(before)), MINUTE_S)
    if now_s >= _LEAST_SURGE_S and times > SURGE_TIMES:
        warnings.append(WaitUnsure(why="surge", times=times))
    if fitted.size_unit != GPUS:
        warnings.append(WaitUnsure(why="other-unit", size_unit=fitted.size_unit, size=size))
    if alike.size is None:
        warnings.append(WaitUnsure(why="any-size", enough_jobs=FEWEST_JOBS))
    return tuple(warnings)
