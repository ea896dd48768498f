"""Jobs that waited in a queue, as a log of a cluster has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GPUS = "gpus"
"""The unit of sizes that waits for GPUs are learned from."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class QueuedJob:
    """A job; times in seconds of one clock.

    Attributes:
        submit_s: when it entered the queue: not before it could have started.
        start_s: infinite if it waits still.
        size: what it asked for, in the log's ``size_unit``.
        walltime_s: the run time it asked for; -1 if it asked for none.
        queue: name of the queue or partition, empty where the log has none.
        user: who submitted it, empty where the log has none.
    """

    submit_s: float
    start_s: float
    size: float
    walltime_s: float
    queue: str
    user: str = ""

    @property
    def wait_s(self) -> float:
        """Time in the queue."""
        return self.start_s - self.submit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """Jobs in order of submission.

    Attributes:
        jobs: those that started.
        size_unit: what sizes count: ``gpus``, ``nodes`` or ``cores``.
        left_out: number of jobs by the reason they do not count for.
        waiting: those that waited when the log was written.
    """

    jobs: tuple[QueuedJob, ...]
    size_unit: str
    left_out: Mapping[str, int]
    waiting: tuple[QueuedJob, ...] = ()

    @property
    def end_s(self) -> float:
        """The last moment that the log knows of, before which it was not written."""
        return max([job.start_s for job in self.jobs] + [job.submit_s for job in self.waiting])
