"""A scheduler's own start estimates beside fitted waits, on real logs: ``python -m research.queue_starts``.

What Slurm's backfill says of a job that waits: the plan made of the jobs that run and wait now, as if each
takes the time that it asks for and no other comes. Conservative backfill, first come, first served, on one
pool. Writes the table of research/docs/methods/queue-wait.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.core.units import MINUTE_S
from advisor.native import simulate_queue
from advisor.native.arrays import Backfill
from recommender.queue.fitted import P50, P90
from recommender.queue.grids import to_waits_s
from recommender.queue.scoring import TRAINED_SHARE
from recommender.queue.waits import JobLog, QueuedJob, Waits, replay
from research.queue_logs import UNITS, queue_of
from research.queue_waits import LOGS, PAGE, STREAMS, log_of, with_table

NUM_JUDGED = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A wait, and what was said of it at the submission; seconds."""

    wait_s: float
    planned_s: float
    p50_s: float
    p90_s: float


def main() -> None:
    """Judge, and write."""
    lines = [
        "| log | estimate | median error, minutes | mean error, log minutes | jobs that started by then |",
        "|---|---|---|---|---|",
    ]
    for name in STREAMS:
        jobs = list(judged(log_of(LOGS[name]), UNITS[LOGS[name]]))
        waits = [job.wait_s for job in jobs]
        lines += [
            _line(name, "planned by backfill", waits, [job.planned_s for job in jobs]),
            _line(name, "fitted p50", waits, [job.p50_s for job in jobs]),
            _line(name, "fitted p90", waits, [job.p90_s for job in jobs]),
        ]
    print("\n".join(lines))
    PAGE.write_text(with_table(PAGE.read_text(), "research/queue_starts.py: planned", lines))


def judged(log: JobLog, units: int) -> Iterator[Judged]:
    """Two thousand jobs of the last 30 % of a log, spread evenly."""
    jobs = sorted(log.jobs)
    first = math.floor(TRAINED_SHARE * len(jobs))
    step = max(1, (len(jobs) - first) // NUM_JUDGED)
    waits = Waits()
    present: list[QueuedJob] = []
    for index, queued in enumerate(replay(jobs, waits)):
        job = queued.job
        present = [one for one in present if one.start_s + one.run_s > job.submit_s]
        if index >= first and (index - first) % step == 0 and queued.grid is not None:
            grid = to_waits_s(waits.reading(job.submit_s, queued.state).of(queued.grid))
            yield Judged(
                wait_s=job.wait_s,
                planned_s=planned_s(job, present, units),
                p50_s=float(grid[P50]),
                p90_s=float(grid[P90]),
            )
        present.append(job)


def planned_s(job: QueuedJob, present: Sequence[QueuedJob], units: int) -> float:
    """The wait that a plan of what runs and waits gives a job; what runs starts a second before the rest."""
    now_s = job.submit_s
    rows = [
        (0, left_s, left_s, math.ceil(one.size), 0, 0)
        for one in present
        if one.start_s <= now_s
        for left_s in [1 + max(1, round(one.start_s + one.walltime_s - now_s))]
    ]
    waiting = [one for one in present if one.start_s > now_s]
    rows += [
        (1, asked_s, asked_s, math.ceil(one.size), 0, 0)
        for one in (*waiting, job)
        for asked_s in [max(1, round(one.walltime_s))]
    ]
    starts, _ = simulate_queue(queue_of(rows, units, Backfill.CONSERVATIVE))
    return float(starts[-1] - 1)


def _line(log: str, estimate: str, waits_s: Sequence[float], said_s: Sequence[float]) -> str:
    waits, said = np.array(waits_s), np.array(said_s)
    error_min = np.median(np.abs(waits - said)) / MINUTE_S
    log_error = np.mean(np.abs(np.log1p(waits / MINUTE_S) - np.log1p(said / MINUTE_S)))
    return (
        f"| {log} | {estimate} | {error_min:,.1f} | {log_error:.2f} | {np.mean(waits <= said + 1e-6):.1%} |"
    )


if __name__ == "__main__":
    main()
