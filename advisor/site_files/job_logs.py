"""Job logs of a cluster -> jobs that waited and started, and jobs that wait still, oldest first.

What never started, or cannot have happened, is left out and counted by reason; what cannot be read is refused
with its line number.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from itertools import compress
from pathlib import Path

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.core.files import temporary_folder, write_atomically
from advisor.core.limits import MAX_PLANNED_S, MAX_SIZE
from advisor.core.units import DAY_S, parse_duration_s
from advisor.formats.foreign_files import why_unreadable
from advisor.site_files import log_rows
from recommender.queue.waits import GPUS, JobLog, QueuedJob

# No queue holds a job for longer: a clock was wrong, or the submission time is a placeholder.
LONGEST_WAIT_S = 366 * DAY_S
MOST_JOBS = 300_000
"""Half a minute of reading and 0.5 GB. The newest jobs tell most: a fit takes the last 8,000 that count."""
MOST_FAULTS = 5
_MOST_COUNTED = 1_000
_LONGEST_FAULT = 200
NEVER_STARTED, NO_GPU = "never started", "asked for no GPU"


def read_job_log(path: Path, zone: tzinfo | None = None) -> JobLog:
    """Read ``sacct --parsable2`` output, CSV, the Standard Workload Format or kubectl's JSON, gzipped or not.

    Raises InputError: unreadable, no job log, lines that make no sense (five are named), or no job that
    started.
    """
    records, passed_over = _read(path, zone)
    unit = next((unit for unit in SIZE_UNITS if any(record.sizes.get(unit) for record in records)), None)
    if records and unit is None:
        message = f"{str(path)!r} does not tell how large its jobs are: "
        if empty := sorted({unit for record in records for unit in record.sizes}):
            raise InputError(
                f"{message}none asks for any {' or '.join(empty)}."
                " Export jobs that do, or one more of the columns gpus, nodes or cores."
                " Slurm counts GPUs only with AccountingStorageTRES=gres/gpu in its slurm.conf."
            )
        raise InputError(
            f"{message}it needs a column gpus, nodes or cores (of sacct: ReqTRES, NNodes or NCPUS)."
        )
    now_s = time.time()
    # A log of another machine, whose clock differs, may be of tomorrow.
    reasons = [_why_left_out(record, unit, now_s + DAY_S) for record in records]
    counted = [record for record, reason in zip(records, reasons, strict=True) if reason is None]
    jobs = sorted(_job(record, unit or "") for record in counted)
    started = tuple(job for job in jobs if job.start_s < math.inf)
    if not started:
        why = ", ".join(f"{count:,} {reason}" for reason, count in Counter(filter(None, reasons)).items())
        of = f", of {len(records):,} in all{f' ({why})' if why else ''}"
        raise InputError(f"{str(path)!r} holds no job that started{of}.")
    last_s = max(job.start_s for job in started)
    waiting = [job for job in jobs if job.start_s == math.inf]
    # What is eligible in the future does not wait yet; sacct itself lists no such job.
    still = tuple(job for job in waiting if last_s - LONGEST_WAIT_S <= job.submit_s <= max(last_s, now_s))
    left_out = Counter(reason for reason in reasons if reason is not None)
    left_out[NEVER_STARTED] += len(waiting) - len(still)
    left_out.update(passed_over)
    return JobLog(
        jobs=started, size_unit=unit or "", left_out=dict(sorted((+left_out).items())), waiting=still
    )


def _read(path: Path, zone: tzinfo | None) -> tuple[list[Record], Counter[str]]:
    """The newest jobs, and how many others are passed over, by reason."""
    if path.exists() and not path.is_file():
        raise InputError(f"cannot read {str(path)!r}: it is no file. Write the log to one.")
    try:
        if log_rows.count_jobs(path, log_rows.MOST_LINES) <= MOST_JOBS:
            return _records(path, log_rows.rows_of(path), zone), Counter()
        is_kept, passed_over = _are_newest(path, zone)
        return _records(path, compress(log_rows.rows_of(path), is_kept), zone), passed_over
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {str(path)!r}: {why_unreadable(error)}.") from error


def _are_newest(path: Path, zone: tzinfo | None) -> tuple[bytes, Counter[str]]:
    """1 for each row of the `MOST_JOBS` newest jobs, else 0; where some ask for GPUs, of those first."""
    import numpy as np

    rows = (
        (isinstance(row, ValueError) or _gpus(row) > 0, _submit_s(row, zone))
        for _, row in log_rows.rows_of(path)
    )
    read = np.fromiter(rows, dtype=[("has_gpus", np.bool_), ("submit_s", np.float64)])
    left = read[others := np.lexsort((read["submit_s"], read["has_gpus"]))[:-MOST_JOBS]]
    is_kept = np.ones(len(read), dtype=np.uint8)
    is_kept[others] = 0
    is_job, asks_less = np.isfinite(left["submit_s"]), read["has_gpus"].any() & ~left["has_gpus"]
    reasons = {NO_GPU: is_job & asks_less, f"older than the newest {MOST_JOBS:,}": is_job & ~asks_less}
    return is_kept.tobytes(), Counter({why: int(which.sum()) for why, which in reasons.items()})


def _submit_s(row: Mapping[str, str] | ValueError, zone: tzinfo | None) -> float:
    """When a job was submitted: never if the row is a step of one, last of all if the row has a fault."""
    if isinstance(row, ValueError):
        return math.inf
    if _is_step(row):
        return -math.inf
    try:
        return max(log_rows.readings_s(_text(row, log_rows.SUBMIT), "submit", zone), default=math.inf)
    except ValueError:
        return math.inf


def _records(
    path: Path, rows: Iterable[tuple[int, Mapping[str, str] | ValueError]], zone: tzinfo | None
) -> list[Record]:
    faults: list[str] = []
    records = []
    place = "item" if log_rows.is_json(path) else "line"
    for number, row in rows:
        try:
            record = row if isinstance(row, ValueError) else parse_record(row, zone)
        except ValueError as error:
            record = error
        except OverflowError:
            record = ValueError("a number is too large")
        if isinstance(record, ValueError):
            faults.append(f"{place} {number}: {record}"[:_LONGEST_FAULT])
            if len(faults) > _MOST_COUNTED:
                break
        elif record is not None:
            records.append(record)
    if not faults:
        return records
    at_least = "at least " if len(faults) > _MOST_COUNTED else ""
    num_more = len(faults) - MOST_FAULTS
    more = [f"and {at_least}{num_more:,} more {place}s"] if num_more > 0 else []
    title = f"{str(path)!r} is not a job log as it should be:"
    raise InputError("\n  ".join([title, *faults[:MOST_FAULTS], *more]))


def _why_left_out(record: Record, unit: str | None, latest_s: float) -> str | None:
    times = record.times
    if unit == GPUS and not record.sizes.get(GPUS):
        return NO_GPU  # waits for something else than those that do
    if times.start_s is None:
        return None if record.may_start else NEVER_STARTED
    if not has_run(record):
        return "cancelled before the start"
    if not times.is_certain:
        return "waited in the hour that a clock repeats"
    if times.start_s < times.entered_s:
        return "started before the submission"
    backwards = times.end_s is not None and times.end_s < times.start_s
    if backwards or times.start_s - times.entered_s > LONGEST_WAIT_S or times.start_s > latest_s:
        return "clock jumped"
    return None


def _job(record: Record, unit: str) -> QueuedJob:
    times = record.times
    return QueuedJob(
        submit_s=times.entered_s,
        start_s=math.inf if times.start_s is None else times.start_s,
        size=record.sizes.get(unit, 0.0),
        walltime_s=-1.0 if record.walltime_s is None else record.walltime_s,
        queue=record.queue,
        user=record.user,
        run_s=-1.0 if times.start_s is None or times.end_s is None else times.end_s - times.start_s,
    )


_ELIGIBLE = ("eligible", "eligible_time")
_END = ("end", "end_time", "endtime")
_RUN = ("elapsed", "run")
_WALLTIME = ("walltime", "requested_walltime", "timelimit", "time_limit")
_QUEUE = ("queue", "partition")
_USER = ("user", "user_id", "userid")
_ID = ("jobid", "job_id")

SIZE_UNITS: Mapping[str, Sequence[str]] = {
    "gpus": ("gpus", "size", "num_gpus"),
    "nodes": ("nodes", "nnodes"),
    "cores": ("cores", "slots", "ncpus", "cpus", "alloc_cores"),
}
"""What sizes may count, the most telling first, and the columns of each."""

_SLURM_TIME = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?")
_TRES = "reqtres", "alloctres"  # the first that tells
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d{1,9})")
_TYPED_GPUS = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d{1,9})")
_SWF_CANCELLED = "5"
_IN_THE_QUEUE = frozenset({"", "UNKNOWN", "PENDING", "PD", "QUEUED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One job as a log gives it; None where it does not."""

    times: log_rows.Times
    sizes: Mapping[str, float]
    """By unit."""
    walltime_s: float | None
    queue: str
    user: str
    """Who submitted it; empty if unknown."""
    is_cancelled: bool
    """Its state says so, before or after the start."""
    may_start: bool
    """It had not started when the log was written, and nothing held it back."""


def parse_record(row: Mapping[str, str], zone: tzinfo | None) -> Record | None:
    """The record of a row; None for a step of a job (``123.batch``). Raises ValueError: an odd field."""
    if _is_step(row):
        return None
    state = row.get("state", "").strip().upper()
    times = _times(row, zone)
    is_held = any(name in row for name in _ELIGIBLE) and _text(row, _ELIGIBLE).lower() in log_rows.ABSENT
    return Record(
        times=times,
        sizes=_sizes(row),
        walltime_s=parse_walltime_s(_text(row, _WALLTIME)),
        queue=_text(row, _QUEUE),
        user="" if (user := _text(row, _USER)).lower() in log_rows.ABSENT else user,
        is_cancelled=state.startswith("CANCELLED") or row.get("status") == _SWF_CANCELLED,
        may_start=times.start_s is None
        and times.end_s is None
        and not is_held
        and "wait" not in row  # SWF holds jobs that are over
        and state in _IN_THE_QUEUE,
    )


def _is_step(row: Mapping[str, str]) -> bool:
    return "." in _text(row, _ID)


def has_run(record: Record) -> bool:
    """Whether it ran: schedulers also give a job that was cancelled in the queue a start, at its end."""
    return not (record.is_cancelled and record.times.end_s == record.times.start_s)


def parse_walltime_s(text: str) -> float | None:
    """Seconds of ``"1-12:00:00"``, ``"30:00"``, ``"12h"`` or ``"43200"``; None where nothing was asked for.

    Raises ValueError: it is none of these, or beyond a century.

    >>> parse_walltime_s("1-12:00:00"), parse_walltime_s("UNLIMITED")
    (129600.0, None)
    """
    if text.lower() in log_rows.ABSENT:
        return None
    seconds = _seconds(text)
    if not 0 <= seconds <= MAX_PLANNED_S:
        raise ValueError(f"{text[:40]!r} is no run time: it must be between 0 and 100 years")
    return seconds


def _seconds(text: str) -> float:
    if (match := _SLURM_TIME.fullmatch(text)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return days * DAY_S + hours * 3600.0 + minutes * 60.0 + seconds
    if (number := log_rows.finite(text)) is not None:
        return number
    return parse_duration_s(text)


def _text(row: Mapping[str, str], names: Sequence[str]) -> str:
    return next((row[name].strip() for name in names if name in row), "")


def _times(row: Mapping[str, str], zone: tzinfo | None) -> log_rows.Times:
    def read(names: Sequence[str]) -> log_rows.Readings:
        return log_rows.readings_s(_text(row, names), names[0], zone)

    submit = read(log_rows.SUBMIT)
    if not submit:
        raise ValueError("the submission time is missing")
    start, run_s = read(log_rows.START), parse_walltime_s(_text(row, _RUN))
    if "wait" in row:
        start = tuple(submit[0] + wait_s for wait_s in log_rows.readings_s(row["wait"], "wait", zone))
    return log_rows.times_of(submit, read(_ELIGIBLE), start, read(_END), run_s)


def _sizes(row: Mapping[str, str]) -> dict[str, float]:
    sizes: dict[str, float] = {}
    for unit, names in SIZE_UNITS.items():
        given = [_size(row[name], name) for name in names if name in row]
        if given:
            sizes[unit] = next((size for size in given if size), 0.0)
    if not sizes.get(GPUS) and any(name in row for name in _TRES):
        sizes[GPUS] = _gpus_of_tres(row)
    return sizes


def _gpus(row: Mapping[str, str]) -> float:
    """As far as can be read."""
    columns = (log_rows.finite(row[name]) for name in SIZE_UNITS[GPUS] if name in row)
    return next((count for count in columns if count), 0.0) or _gpus_of_tres(row)


def _size(text: str, name: str) -> float:
    if text.strip().lower() in log_rows.ABSENT:
        return 0.0
    number = log_rows.finite(text)
    if number is None or not 0 <= number <= MAX_SIZE:
        raise ValueError(f"{name} {text[:40]!r} is no count: it must be between 0 and {MAX_SIZE:,}")
    return number


def _gpus_of_tres(row: Mapping[str, str]) -> float:
    """GPUs of ``"cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1"``: the sum, or else its parts."""
    for text in (row[name] for name in _TRES if name in row):
        total = _GPUS.search(text)
        if count := int(total[1]) if total else sum(map(int, _TYPED_GPUS.findall(text))):
            return float(count)
    return 0.0


# --- What a live scheduler tells, as a log ---------------------------------------------------------------


SLURM = "slurm"
_SINCE = "now-180days"
_SACCT = ("sacct", "--allusers", "--allocations", "--parsable2", f"--starttime={_SINCE}")
SCHEDULERS = {
    SLURM: (*_SACCT, f"--format={log_rows.SACCT_FORMAT}"),
    "kueue": log_rows.KUEUE,
    "volcano": log_rows.VOLCANO,
}
"""What asks each for the jobs of all users, Slurm for the last 180 days: the word stands for a log."""
# 2 million jobs take a minute.
_WITHIN_S = 600.0
_MOST_WORDS = 300


def is_live(source: Path, name: str) -> bool:
    """Whether it is the word of this scheduler, and no file."""
    return str(source) == name and name in SCHEDULERS and not source.exists()


@contextmanager
def log_or_live(source: Path) -> Iterator[Path]:
    """The log itself; of the word of a scheduler, what it tells now, as a temporary file.

    Raises InputError: its program is missing, refuses, or does not answer.
    """
    if not is_live(source, name := str(source)):
        yield source
        return
    with temporary_folder(name) as folder:
        try:
            answer = answer_of(name, SCHEDULERS[name], within_s=_WITHIN_S)
        except InputError as error:
            raise InputError(f"{error} Give a log instead.") from error
        write_atomically(path := folder / name, answer)
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(repr(str(path)), f"what {name} tells")) from error


def answer_of(name: str, command: Sequence[str], *, within_s: float) -> bytes:
    """What a command of a scheduler prints, with times in UTC.

    Raises InputError: it is missing, refuses, or does not answer.
    """
    asked = f"{name.capitalize()} ({command[0]})"
    utc = {"SLURM_TIME_FORMAT": "%Y-%m-%dT%H:%M:%S+00:00", "TZ": "UTC"}
    try:
        done = processes.run(command, timeout_s=within_s, environment={**os.environ, **utc})
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{asked} did not answer within {within_s:.0f} s.") from error
    except OSError as error:
        raise InputError(
            f"{asked} cannot be asked: this machine has no {command[0]}. Run this where it is, such as a"
            " login node."
        ) from error
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[:_MOST_WORDS]
        raise InputError(f"{asked} refuses: {said or done.returncode}.")
    return done.stdout
