"""What a scheduler's limits mean for a job: where it never starts, and whose jobs it waits for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.core.findings.about_options import QueueShared, RemovedByQueue
from advisor.core.values import Limited, QueueLimit


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
