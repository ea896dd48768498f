"""The waits of a whole log: quantiles by bin, and which of them answers a question."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.core.errors import InputError, did_you_mean
from advisor.core.values import Quantiles
from recommender.queue.job_log import GPUS, JobLog
from recommender.queue.waits import (
    ALL,
    ENOUGH_JOBS,
    FEWEST_JOBS,
    Bin,
    Waits,
    fallbacks,
    replay,
    size_bin,
    walltime_bin,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBin:
    """Waits of jobs that are alike, corrected; ``size``, ``walltime`` or ``queue`` None means any."""

    size: str | None
    walltime: str | None
    queue: str | None
    num_jobs: int
    p50_s: float
    p90_s: float

    @property
    def key(self) -> Bin:
        """Where it is looked up."""
        return self.size, self.walltime, self.queue


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitQuantiles:
    """What a log tells of the waits at its end; no rows of it.

    Attributes:
        size_unit: what sizes count: ``gpus``, ``nodes`` or ``cores``.
        num_jobs: jobs that count, of which the last 8,000 make the quantiles.
        left_out: number of jobs by the reason they do not count for.
        queues: names of all queues of the log.
        first_submit_s: seconds since 1970, or of the log's own clock.
    """

    size_unit: str
    num_jobs: int
    left_out: Mapping[str, int]
    queues: tuple[str, ...]
    first_submit_s: float
    last_submit_s: float
    offset_p50: float
    offset_p90: float
    bins: tuple[WaitBin, ...]

    def of(self, *, size: float, walltime_s: float | None = None, queue: str | None = None) -> WaitBin:
        """The narrowest bin with enough jobs like this one.

        Args:
            size: in ``size_unit``.
            walltime_s: the run time it will ask for; None if unknown.
            queue: where it will wait; None if unknown.

        Raises:
            InputError: the log knows no such queue.
        """
        if queue is not None and queue not in self.queues:
            known = ", ".join(name for name in self.queues if name) or "none"
            hint = did_you_mean(queue, self.queues)
            raise InputError(f"the log has no queue {queue!r}.{hint} It has: {known}.")
        by_key = {found.key: found for found in self.bins}
        walltime = None if walltime_s is None else walltime_bin(walltime_s)
        return next(by_key[key] for key in fallbacks(size_bin(size), walltime, queue) if key in by_key)


def fit(log: JobLog) -> WaitQuantiles:
    """Quantiles and correction after the last job of the log has started.

    Raises:
        InputError: fewer than ten jobs.
    """
    if len(log.jobs) < FEWEST_JOBS:
        raise InputError(
            f"the log has {len(log.jobs)} jobs that started: quantiles need at least {FEWEST_JOBS}, and are"
            f" worth something from {ENOUGH_JOBS}. Export a longer time."
        )
    waits = Waits()
    deque(replay(log.jobs, waits), maxlen=0)
    waits.advance(float("inf"))
    return WaitQuantiles(
        size_unit=log.size_unit,
        num_jobs=len(log.jobs),
        left_out=log.left_out,
        queues=tuple(sorted({job.queue for job in log.jobs})),
        first_submit_s=log.jobs[0].submit_s,
        last_submit_s=log.jobs[-1].submit_s,
        offset_p50=waits.offset_p50,
        offset_p90=waits.offset_p90,
        bins=tuple(_wait_bin(waits, which, count) for which, count in sorted(waits.bins(), key=_order)),
    )


def _order(item: tuple[Bin, int]) -> tuple[bool, list[str], int]:
    """All jobs first, then the largest bins of what is alike."""
    which, count = item
    return which != ALL, [name or "" for name in which], -count


def _wait_bin(waits: Waits, which: Bin, num_jobs: int) -> WaitBin:
    expected = waits.expect_in(which)
    assert expected is not None, "a bin with enough jobs has quantiles"  # noqa: S101
    wait_s: Quantiles = waits.corrected(expected)
    size, walltime, queue = which
    return WaitBin(
        size=size, walltime=walltime, queue=queue, num_jobs=num_jobs, p50_s=wait_s.p50, p90_s=wait_s.p90
    )


def basis(alike: WaitBin, size_unit: str) -> str:
    """In words, which jobs a wait was taken from: ``"812 jobs of 4..7 gpus, walltime <=12h"``."""
    parts = [] if alike.size is None else [f"of {alike.size} {size_unit}"]
    parts += [] if alike.walltime is None else [f"walltime {alike.walltime}"]
    parts += [] if alike.queue is None else [f"queue {alike.queue!r}"]
    return f"{alike.num_jobs:,} jobs {', '.join(parts) or 'of any kind'}"


def warnings_of(found: WaitQuantiles, alike: WaitBin, size: float) -> tuple[str, ...]:
    """What makes an answer for a size doubtful: a log that counts no GPUs, or knows few such jobs."""
    warnings = []
    if found.size_unit != GPUS:
        warnings.append(f"the log counts {found.size_unit}, not GPUs: this is the wait of size {size:g}")
    if alike.size is None:
        warnings.append(
            f"the log has fewer than {ENOUGH_JOBS} jobs of this size: the wait is that of jobs of any size"
        )
    return tuple(warnings)
