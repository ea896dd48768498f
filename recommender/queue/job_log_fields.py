"""Columns of a job log -> one record: times, size, requested run time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from advisor.core.limits import MAX_PLANNED_S, MAX_SIZE
from advisor.core.units import DAY_S, parse_duration_s
from recommender.queue.log_clock import ABSENT, Readings, Times, finite, readings_s, times_of

SUBMIT = ("submit", "submit_time", "submittime")
START = ("start", "start_time", "starttime")
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
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d{1,9})")
_TYPED_GPUS = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d{1,9})")
_SWF_CANCELLED = "5"
_IN_THE_QUEUE = frozenset({"", "UNKNOWN", "PENDING", "PD", "QUEUED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One job as a log tells it; None where it does not.

    Attributes:
        sizes: by unit.
        user: who submitted it; empty if unknown.
        is_cancelled: its state says so, before or after the start.
        may_start: it had not started when the log was written, and nothing held it back.
    """

    times: Times
    sizes: Mapping[str, float]
    walltime_s: float | None
    queue: str
    user: str
    is_cancelled: bool
    may_start: bool


def parse_record(row: Mapping[str, str], zone: tzinfo | None) -> Record | None:
    """The record of a row; None for a step of a job (``123.batch``), which waited for nothing.

    Args:
        row: fields by column.
        zone: of times without one; None is the zone of this machine.

    Raises:
        ValueError: a field is neither of its kind nor absent.
    """
    if "." in _text(row, _ID):
        return None
    state = row.get("state", "").strip().upper()
    times = _times(row, zone)
    is_held = any(name in row for name in _ELIGIBLE) and _text(row, _ELIGIBLE).lower() in ABSENT
    return Record(
        times=times,
        sizes=_sizes(row),
        walltime_s=parse_walltime_s(_text(row, _WALLTIME)),
        queue=_text(row, _QUEUE),
        user="" if (user := _text(row, _USER)).lower() in ABSENT else user,
        is_cancelled=state.startswith("CANCELLED") or row.get("status") == _SWF_CANCELLED,
        may_start=times.start_s is None
        and times.end_s is None
        and not is_held
        and "wait" not in row  # SWF holds jobs that are over
        and state in _IN_THE_QUEUE,
    )


def has_run(record: Record) -> bool:
    """Whether it ran: schedulers also give a job that was cancelled in the queue a start, at its end."""
    return not (record.is_cancelled and record.times.end_s == record.times.start_s)


def parse_walltime_s(text: str) -> float | None:
    """Seconds of ``"1-12:00:00"``, ``"30:00"``, ``"12h"`` or ``"43200"``; None where nothing was asked for.

    Raises:
        ValueError: it is none of these, or beyond a century.

    >>> parse_walltime_s("1-12:00:00"), parse_walltime_s("UNLIMITED")
    (129600.0, None)
    """
    if text.lower() in ABSENT:
        return None
    seconds = _seconds(text)
    if not 0 <= seconds <= MAX_PLANNED_S:
        raise ValueError(f"{text[:40]!r} is no run time: it must be between 0 and 100 years")
    return seconds


def _seconds(text: str) -> float:
    if (match := _SLURM_TIME.fullmatch(text)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return days * DAY_S + hours * 3600.0 + minutes * 60.0 + seconds
    if (number := finite(text)) is not None:
        return number
    return parse_duration_s(text)


def _text(row: Mapping[str, str], names: Sequence[str]) -> str:
    return next((row[name].strip() for name in names if name in row), "")


def _times(row: Mapping[str, str], zone: tzinfo | None) -> Times:
    def read(names: Sequence[str]) -> Readings:
        return readings_s(_text(row, names), names[0], zone)

    submit = read(SUBMIT)
    if not submit:
        raise ValueError("the submission time is missing")
    start, run_s = read(START), parse_walltime_s(_text(row, _RUN))
    if "wait" in row:
        start = tuple(submit[0] + wait_s for wait_s in readings_s(row["wait"], "wait", zone))
    return times_of(submit, read(_ELIGIBLE), start, read(_END), run_s)


def _sizes(row: Mapping[str, str]) -> dict[str, float]:
    sizes: dict[str, float] = {}
    for unit, names in SIZE_UNITS.items():
        given = [_size(row[name], name) for name in names if name in row]
        if given:
            sizes[unit] = next((size for size in given if size), 0.0)
    gpus = [_gpus_of_tres(row[name]) for name in ("reqtres", "alloctres") if name in row]
    if gpus and not sizes.get("gpus"):
        sizes["gpus"] = next((count for count in gpus if count), 0.0)
    return sizes


def _size(text: str, name: str) -> float:
    if text.strip().lower() in ABSENT:
        return 0.0
    number = finite(text)
    if number is None or not 0 <= number <= MAX_SIZE:
        raise ValueError(f"{name} {text[:40]!r} is no count: it must be between 0 and {MAX_SIZE:,}")
    return number


def _gpus_of_tres(text: str) -> float:
    """GPUs of ``"cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1"``: the sum, or else its parts."""
    total = _GPUS.search(text)
    return float(total[1]) if total else float(sum(map(int, _TYPED_GPUS.findall(text))))
