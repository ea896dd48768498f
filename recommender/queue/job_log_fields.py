"""Columns of a job log -> one record: times, size, requested run time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from advisor.core.units import DAY_S, parse_duration_s

SUBMIT = ("submit", "submit_time", "submittime")
START = ("start", "start_time", "starttime")
_ELIGIBLE = ("eligible", "eligible_time")
_END = ("end", "end_time", "endtime")
_RUN = ("elapsed", "run")
_WALLTIME = ("walltime", "requested_walltime", "timelimit", "time_limit")
_QUEUE = ("queue", "partition")
_ID = ("jobid", "job_id")

SIZE_UNITS: Mapping[str, Sequence[str]] = {
    "gpus": ("gpus", "size", "num_gpus"),
    "nodes": ("nodes", "nnodes"),
    "cores": ("cores", "slots", "ncpus", "cpus", "alloc_cores"),
}
"""What sizes may count, the most telling first, and the columns of each."""

_ABSENT = frozenset({"", "-1", "unknown", "none", "n/a", "unlimited", "partition_limit", "invalid"})
_SLURM_TIME = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?")
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d{1,9})")
_TYPED_GPUS = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d{1,9})")
_SWF_CANCELLED = "5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One job as a log tells it; None where it does not.

    Attributes:
        submit_s: when it could have started at the earliest.
        sizes: by unit.
        is_cancelled: its state says so, before or after the start.
    """

    submit_s: float
    start_s: float | None
    end_s: float | None
    sizes: Mapping[str, float]
    walltime_s: float | None
    queue: str
    is_cancelled: bool


def parse_record(row: Mapping[str, str]) -> Record | None:
    """The record of a row; None for a step of a job (``123.batch``), which waited for nothing.

    Raises:
        ValueError: a field is neither of its kind nor absent.
    """
    if "." in _text(row, _ID):
        return None
    submit_s = _time_s(_text(row, SUBMIT), SUBMIT[0])
    if submit_s is None:
        raise ValueError("the submission time is missing")
    eligible_s = _time_s(_text(row, _ELIGIBLE), _ELIGIBLE[0])
    start_s = _start_s(row, submit_s)
    return Record(
        # A job that was held back, or waits for another one, is not in the queue yet.
        submit_s=submit_s if eligible_s is None or start_s is None else max(submit_s, eligible_s),
        start_s=start_s,
        end_s=_end_s(row, start_s),
        sizes=_sizes(row),
        walltime_s=parse_walltime_s(_text(row, _WALLTIME)),
        queue=_text(row, _QUEUE),
        is_cancelled=row.get("state", "").upper().startswith("CANCELLED")
        or row.get("status") == _SWF_CANCELLED,
    )


def has_run(record: Record) -> bool:
    """Whether it ran: schedulers also give a job that was cancelled in the queue a start, at its end."""
    return not (record.is_cancelled and record.end_s == record.start_s)


def parse_walltime_s(text: str) -> float | None:
    """Seconds of ``"1-12:00:00"``, ``"30:00"``, ``"12h"`` or ``"43200"``; None where nothing was asked for.

    Raises:
        ValueError: it is none of these.

    >>> parse_walltime_s("1-12:00:00"), parse_walltime_s("UNLIMITED")
    (129600.0, None)
    """
    if text.lower() in _ABSENT:
        return None
    if (match := _SLURM_TIME.fullmatch(text)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return days * DAY_S + hours * 3600.0 + minutes * 60.0 + seconds
    if (number := _number(text)) is not None:
        return number
    return parse_duration_s(text)


def _text(row: Mapping[str, str], names: Sequence[str]) -> str:
    return next((row[name].strip() for name in names if name in row), "")


def _start_s(row: Mapping[str, str], submit_s: float) -> float | None:
    if "wait" not in row:
        return _time_s(_text(row, START), START[0])
    wait_s = _time_s(row["wait"], "wait")
    return None if wait_s is None else submit_s + wait_s


def _end_s(row: Mapping[str, str], start_s: float | None) -> float | None:
    if any(name in row for name in _END):
        return _time_s(_text(row, _END), _END[0])
    run_s = parse_walltime_s(_text(row, _RUN))
    return None if run_s is None or start_s is None else start_s + run_s


def _time_s(text: str, name: str) -> float | None:
    """Seconds since 1970 of an ISO time, or a bare number of seconds; None where the log knows none."""
    if text.lower() in _ABSENT:
        return None
    if (number := _number(text)) is not None:
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is no time such as 2026-03-01T12:00:00, nor seconds") from None
    # Only differences count, so any zone will do for a log that names none.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _sizes(row: Mapping[str, str]) -> dict[str, float]:
    sizes: dict[str, float] = {}
    for unit, names in SIZE_UNITS.items():
        told = [_size(row[name], name) for name in names if name in row]
        if told:
            sizes[unit] = next((size for size in told if size), 0.0)
    gpus = [_gpus_of_tres(row[name]) for name in ("reqtres", "alloctres") if name in row]
    if gpus and not sizes.get("gpus"):
        sizes["gpus"] = next((count for count in gpus if count), 0.0)
    return sizes


def _size(text: str, name: str) -> float:
    if text.strip().lower() in _ABSENT:
        return 0.0
    number = _number(text)
    if number is None or number < 0:
        raise ValueError(f"{name} {text!r} is no count")
    return number


def _gpus_of_tres(text: str) -> float:
    """GPUs of ``"cpu=8,gres/gpu=2,gres/gpu:a100=2,node=1"``: the sum, or else its parts."""
    total = _GPUS.search(text)
    return float(total[1]) if total else float(sum(map(int, _TYPED_GPUS.findall(text))))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
