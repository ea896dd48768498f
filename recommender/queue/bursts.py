"""Jobs that are one piece of evidence: alike, submitted together and started together.

A user who submits two hundred equal jobs in a minute tells about the queue once. Jobs of one user, size,
walltime and queue that were submitted within five minutes of each other, and started so, count as one. A job
of the same burst that starts later met another queue, and counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from advisor.core.units import MINUTE_S
from recommender.queue.jobs import QueuedJob

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
