"""Job logs of a cluster -> jobs that waited and started, and jobs that wait still, oldest first.

What never started, or cannot have happened, is left out and counted by reason; what cannot be read is refused
with its line number.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.units import DAY_S
from advisor.formats.foreign_files import why_unreadable
from recommender.queue.job_log_fields import SIZE_UNITS, Record, has_run, parse_record
from recommender.queue.job_log_lines import rows_of

# No queue holds a job for longer: a clock was wrong, or the submission time is a placeholder.
LONGEST_WAIT_S = 366 * DAY_S
MOST_FAULTS = 5
_MOST_COUNTED = 1_000
_LONGEST_FAULT = 200
GPUS = "gpus"
NEVER_STARTED = "never started"


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


def read_job_log(path: Path, zone: tzinfo | None = None) -> JobLog:
    """Read ``sacct --parsable2`` output, a CSV file or the Standard Workload Format, gzipped or not.

    Args:
        path: the log.
        zone: of times without one; None is the zone of this machine.

    Raises:
        InputError: unreadable, no job log, lines that make no sense (five are named), or no job that started.
    """
    records = _read(path, zone)
    unit = next((unit for unit in SIZE_UNITS if any(record.sizes.get(unit) for record in records)), None)
    if records and unit is None:
        raise InputError(_without_sizes(path, records))
    reasons = [_why_left_out(record, unit) for record in records]
    counted = [record for record, reason in zip(records, reasons, strict=True) if reason is None]
    jobs = sorted(_job(record, unit or "") for record in counted)
    started = tuple(job for job in jobs if job.start_s < math.inf)
    if not started:
        raise InputError(f"{str(path)!r} holds no job that started, of {len(records):,} in all.")
    last_s = max(job.start_s for job in started)
    waiting = [job for job in jobs if job.start_s == math.inf]
    still = tuple(job for job in waiting if last_s - job.submit_s <= LONGEST_WAIT_S)
    left_out = Counter(reason for reason in reasons if reason is not None)
    left_out[NEVER_STARTED] += len(waiting) - len(still)
    return JobLog(
        jobs=started, size_unit=unit or "", left_out=dict(sorted((+left_out).items())), waiting=still
    )


def _without_sizes(path: Path, records: Iterable[Record]) -> str:
    empty = sorted({unit for record in records for unit in record.sizes})
    if empty:
        return (
            f"{str(path)!r} does not tell how large its jobs are: none asks for any {' or '.join(empty)}."
            " Export jobs that do, or one more of the columns gpus, nodes or cores."
        )
    return (
        f"{str(path)!r} does not tell how large its jobs are: it needs a column gpus, nodes or cores"
        " (of sacct: ReqTRES, NNodes or NCPUS)."
    )


def _read(path: Path, zone: tzinfo | None) -> list[Record]:
    if path.exists() and not path.is_file():
        raise InputError(f"cannot read {str(path)!r}: it is no file. Write the log to one.")
    try:
        return _records(path, zone)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {str(path)!r}: {why_unreadable(error)}.") from error


def _records(path: Path, zone: tzinfo | None) -> list[Record]:
    faults: list[str] = []
    records = []
    for number, row in rows_of(path):
        try:
            record = row if isinstance(row, ValueError) else parse_record(row, zone)
        except ValueError as error:
            record = error
        except OverflowError:
            record = ValueError("a number is too large")
        if isinstance(record, ValueError):
            faults.append(f"line {number}: {record}"[:_LONGEST_FAULT])
            if len(faults) > _MOST_COUNTED:
                break
        elif record is not None:
            records.append(record)
    if faults:
        raise InputError(_in_words(path, faults))
    return records


def _in_words(path: Path, faults: Iterable[str]) -> str:
    lines = list(faults)
    at_least = "at least " if len(lines) > _MOST_COUNTED else ""
    more = [f"and {at_least}{len(lines) - MOST_FAULTS:,} more lines"] if len(lines) > MOST_FAULTS else []
    return "\n  ".join([f"{str(path)!r} is not a job log as it should be:", *lines[:MOST_FAULTS], *more])


def _why_left_out(record: Record, unit: str | None) -> str | None:
    times = record.times
    if unit == GPUS and not record.sizes.get(GPUS):
        return "asked for no GPU"  # waits for something else than those that do
    if times.start_s is None:
        return None if record.may_start else NEVER_STARTED
    if not has_run(record):
        return "cancelled before the start"
    if not times.is_certain:
        return "waited in the hour that a clock repeats"
    if times.start_s < times.entered_s:
        return "started before the submission"
    backwards = times.end_s is not None and times.end_s < times.start_s
    if backwards or times.start_s - times.entered_s > LONGEST_WAIT_S:
        return "clock jumped"
    return None


def _job(record: Record, unit: str) -> QueuedJob:
    return QueuedJob(
        submit_s=record.times.entered_s,
        start_s=math.inf if record.times.start_s is None else record.times.start_s,
        size=record.sizes.get(unit, 0.0),
        walltime_s=-1.0 if record.walltime_s is None else record.walltime_s,
        queue=record.queue,
        user=record.user,
    )
