"""Job logs of a cluster -> jobs that waited and started, oldest first.

What never started, or cannot have happened, is left out and counted by reason; what cannot be read is refused
with its line number.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.units import DAY_S
from recommender.queue.job_log_fields import SIZE_UNITS, Record, has_run, parse_record
from recommender.queue.job_log_lines import rows_of

# No queue holds a job for longer: a clock was wrong, or the submission time is a placeholder.
LONGEST_WAIT_S = 366 * DAY_S
MOST_FAULTS = 5
_MOST_COUNTED = 1_000
_LONGEST_FAULT = 200
GPUS = "gpus"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class QueuedJob:
    """A job that has started; times in seconds of one clock.

    Attributes:
        size: what it asked for, in the log's ``size_unit``.
        walltime_s: the run time it asked for; -1 if it asked for none.
        queue: name of the queue or partition, empty where the log has none.
    """

    submit_s: float
    start_s: float
    size: float
    walltime_s: float
    queue: str

    @property
    def wait_s(self) -> float:
        """Time in the queue."""
        return self.start_s - self.submit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """Jobs in order of submission.

    Attributes:
        size_unit: what sizes count: ``gpus``, ``nodes`` or ``cores``.
        left_out: number of jobs by the reason they do not count for.
    """

    jobs: tuple[QueuedJob, ...]
    size_unit: str
    left_out: Mapping[str, int]


def read_job_log(path: Path) -> JobLog:
    """Read ``sacct --parsable2`` output, a CSV file or the Standard Workload Format, gzipped or not.

    Raises:
        InputError: unreadable, no job log, lines that make no sense (five are named), or no job that started.
    """
    records = _read(path)
    unit = next((unit for unit in SIZE_UNITS if any(record.sizes.get(unit) for record in records)), None)
    if records and unit is None:
        raise InputError(
            f"{str(path)!r} does not tell how large its jobs are: it needs a column gpus, nodes or cores"
            " (of sacct: ReqTRES, NNodes or NCPUS)."
        )
    reasons = [_why_left_out(record, unit) for record in records]
    counted = zip(records, reasons, strict=True)
    jobs = [_job(record, unit or "") for record, reason in counted if reason is None]
    if not jobs:
        raise InputError(f"{str(path)!r} holds no job that started, of {len(records):,} in all.")
    left_out = Counter(reason for reason in reasons if reason is not None)
    return JobLog(jobs=tuple(sorted(jobs)), size_unit=unit or "", left_out=dict(sorted(left_out.items())))


def _read(path: Path) -> list[Record]:
    if path.exists() and not path.is_file():
        raise InputError(f"cannot read {str(path)!r}: it is no file. Write the log to one.")
    try:
        return _records(path)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}.") from error


def _records(path: Path) -> list[Record]:
    faults: list[str] = []
    records = []
    for number, row in rows_of(path):
        try:
            record = row if isinstance(row, ValueError) else parse_record(row)
        except ValueError as error:
            record = error
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
    if unit == GPUS and not record.sizes.get(GPUS):
        return "asked for no GPU"  # waits for something else than those that do
    if record.start_s is None:
        return "never started"
    if not has_run(record):
        return "cancelled before the start"
    if record.start_s < record.submit_s:
        return "started before the submission"
    backwards = record.end_s is not None and record.end_s < record.start_s
    if backwards or record.start_s - record.submit_s > LONGEST_WAIT_S:
        return "clock jumped"
    return None


def _job(record: Record, unit: str) -> QueuedJob:
    assert record.start_s is not None, "jobs without a start were left out"  # noqa: S101
    return QueuedJob(
        submit_s=record.submit_s,
        start_s=record.start_s,
        size=record.sizes.get(unit, 0.0),
        walltime_s=-1.0 if record.walltime_s is None else record.walltime_s,
        queue=record.queue,
    )
