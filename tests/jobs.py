"""Jobs of a cluster for tests, and the forms a job log comes in."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from recommender.queue.waits import JobLog, QueuedJob

BEGINNING_S = 1_700_000_000.0
SACCT_COLUMNS = "JobID|Submit|Start|End|Elapsed|Timelimit|ReqTRES|NCPUS|NNodes|Partition|State"


def make_job(
    minute: float,
    *,
    wait_s: float = 60.0,
    size: float = 1,
    walltime_s: float = 3600.0,
    queue: str = "gpu",
    user: str = "",
) -> QueuedJob:
    """A job submitted in a minute of the log; an infinite wait lasts still."""
    submit_s = BEGINNING_S + 60 * minute
    return QueuedJob(
        submit_s=submit_s, start_s=submit_s + wait_s, size=size, walltime_s=walltime_s, queue=queue, user=user
    )


def job_log(jobs: Iterable[QueuedJob]) -> JobLog:
    """A log of GPU jobs without faults."""
    ordered = sorted(jobs)
    started = tuple(job for job in ordered if job.start_s < math.inf)
    waiting = tuple(job for job in ordered if job.start_s == math.inf)
    return JobLog(jobs=started, size_unit="gpus", left_out={}, waiting=waiting)


def csv_of(jobs: Sequence[QueuedJob]) -> str:
    """As a CSV file."""
    rows = [f"{j.submit_s},{j.start_s},{j.size},{j.walltime_s},{j.queue}" for j in jobs]
    return "\n".join(["submit,start,gpus,walltime,queue", *rows, ""])


def sacct_of(jobs: Sequence[QueuedJob]) -> str:
    """As ``sacct --parsable2`` prints, each job with a step; whole seconds."""
    lines = [SACCT_COLUMNS]
    for number, job in enumerate(jobs, start=100):
        submit, start, end = map(_iso, (job.submit_s, job.start_s, job.start_s + 600))
        limit = _slurm(job.walltime_s)
        tres = f"billing=8,cpu=8,gres/gpu={job.size:.0f},mem=64G,node=1"
        lines += [
            f"{number}|{submit}|{start}|{end}|00:10:00|{limit}|{tres}|8|1|{job.queue}|COMPLETED",
            f"{number}.batch|{start}|{start}|{end}|00:10:00||||1||COMPLETED",
        ]
    return "\n".join([*lines, ""])


def swf_of(jobs: Sequence[QueuedJob]) -> str:
    """In the Standard Workload Format; queues are numbers there."""
    lines = ["; UnixStartTime: 0", ";"]
    for number, job in enumerate(jobs, start=1):
        size = f"{job.size:.0f}"
        lines.append(
            f"{number} {job.submit_s:.0f} {job.wait_s:.0f} 600 {size} -1 -1 {size} {job.walltime_s:.0f}"
            f" -1 1 {job.user or -1} 1 -1 {job.queue} -1 -1 -1"
        )
    return "\n".join([*lines, ""])


def _iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def _slurm(seconds: float) -> str:
    if seconds < 0:
        return "UNLIMITED"
    days, rest = divmod(round(seconds), 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
