"""Rows of the logs that clusters write, and the times in them.

A job log comes in four forms:

- ``sacct --parsable2``: a header, fields between ``|``, nothing quoted
- CSV: a header, RFC 4180
- SWF, the Standard Workload Format (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): 18 numbers a
  line and no header; ``;`` starts a comment
- JSON of kubectl: Workloads of Kueue (https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1), Jobs of
  Volcano (https://volcano.sh/en/docs/vcjob)

A log without zones is written in the local time of its cluster, whose clock repeats one hour each autumn and
skips one each spring. A time in the repeated hour has two readings; what else is known of the job decides.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import product
from pathlib import Path
from typing import Any, TextIO

from advisor.core.errors import InputError
from advisor.core.units import MINUTE_S
from advisor.formats.foreign_files import check_once, open_unpacked, read_members

SUBMIT = ("submit", "submit_time", "submittime")
START = ("start", "start_time", "starttime")
MOST_LINES = 10_000_000
"""Of a job log, or jobs of JSON: five minutes of reading."""
_MOST_ROWS = 1_000_000  # of a table, all of which are kept

SACCT_FORMAT = "JobID,User,Submit,Eligible,Start,End,Elapsed,Timelimit,ReqTRES,Partition,State"
"""Columns of sacct that tell all we use."""

Row = Mapping[str, str]
_MOST_CHARACTERS = 2**20

# Fields of SWF in order, by the names of the columns of the other forms; "" is not used.
_SWF = (
    "job_id", "submit", "wait", "run", "alloc_cores", "", "", "cores", "walltime", "", "status",
    "user", "", "", "queue", "", "", "",
)  # fmt: skip


def rows_of(path: Path) -> Iterator[tuple[int, Row | ValueError]]:
    """Number of the line (of JSON, the item), and its row or what is wrong; column names in lower case.

    The length is not checked: who reads a file twice counts its jobs once. Raises InputError: no header that
    we know; OSError, EOFError, ValueError, zlib.error: it cannot be read.
    """
    if is_json(path):
        with _opened(path) as text:
            yield from _kubernetes_rows(text)
        return
    with _opened(path) as text:
        first = next((line for line in _lines(text) if line.strip()), "")
    with _opened(path) as text:
        is_plain = len(first.split()) == len(_SWF) and "," not in first and "|" not in first
        if is_plain or first.lstrip().startswith(";"):
            yield from _swf_rows(_lines(text))
        else:
            yield from _table_rows(_lines(text), "|" if "|" in first else ",", path, _check_header)


def count_jobs(path: Path, most: int) -> int:
    """The number of items of JSON, else of lines, before anything is kept.

    Raises InputError: more than ``most``; OSError, EOFError, ValueError, zlib.error: it cannot be read.
    """
    if not is_json(path):
        return count_lines(path, most)
    num_jobs = 0
    for num_jobs, _ in rows_of(path):
        if num_jobs > most:
            raise InputError(f"{str(path)!r} has more than {most:,} jobs: keep the newest.")
    return num_jobs


def table_rows(
    path: Path, check_header: Callable[[list[str], Path], None]
) -> Iterator[tuple[int, Row | ValueError]]:
    """As `rows_of` of a CSV file, gzipped or not, whose length is checked.

    Raises: as `rows_of`; ``check_header`` raises InputError where columns are missing.
    """
    count_lines(path, _MOST_ROWS)
    with _opened(path) as text:
        yield from _table_rows(_lines(text), ",", path, check_header)


def _opened(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_unpacked(path), "utf-8-sig", newline="")


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(_MOST_CHARACTERS + 1):
        if len(line) > _MOST_CHARACTERS:
            raise ValueError(f"it has a line of more than {_MOST_CHARACTERS / 1e6:.0f} million characters")
        yield line


def count_lines(path: Path, most: int) -> int:
    """The number of lines, before anything is kept: a small gzip may hold any number of them.

    Raises InputError: more than ``most``; OSError, EOFError, zlib.error: it cannot be read.
    """
    num_lines = 0
    with open_unpacked(path) as file:
        while piece := file.read(_MOST_CHARACTERS):
            num_lines += max(piece.count(b"\n"), piece.count(b"\r"))
            if num_lines > most:
                raise InputError(
                    f"{str(path)!r} has more than {most:,} lines: keep the newest, such as the last"
                    " months by sacct --starttime."
                )
    return num_lines


def is_json(path: Path) -> bool:
    """By the first character, since all of it may be one line of any length."""
    with _opened(path) as text:
        pieces = iter(lambda: text.read(io.DEFAULT_BUFFER_SIZE), "")
        return next(filter(None, map(str.lstrip, pieces)), "").startswith("{")


def _swf_rows(lines: Iterable[str]) -> Iterator[tuple[int, Row | ValueError]]:
    for number, line in enumerate(lines, start=1):
        fields = line.partition(";")[0].split()
        if not fields:
            continue
        if len(fields) != len(_SWF):
            yield number, ValueError(f"{len(fields)} fields, where SWF has {len(_SWF)}")
        else:
            yield number, {name: value for name, value in zip(_SWF, fields, strict=True) if name}


def _table_rows(
    lines: Iterable[str], delimiter: str, path: Path, check_header: Callable[[list[str], Path], None]
) -> Iterator[tuple[int, Row | ValueError]]:
    if delimiter == "|":
        reader = csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip().lower() for name in next(filter(_holds_something, reader), [])]
        if not header:
            raise InputError(f"{str(path)!r} is empty.")
        check_header(header, path)
        check_once("column", header)
        for fields in reader:
            if not _holds_something(fields):
                continue
            if len(fields) != len(header):
                yield reader.line_num, ValueError(f"{len(fields)} fields under {len(header)} columns")
            else:
                yield reader.line_num, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        yield reader.line_num, ValueError(f"no valid CSV: {error}")


def _holds_something(fields: list[str]) -> bool:
    """Spreadsheets leave rows of nothing but commas behind."""
    return any(field.strip() for field in fields)


def _check_header(header: list[str], path: Path) -> None:
    for meant, names in (("submission", SUBMIT), ("start", START)):
        if not set(names) & set(header):
            raise InputError(
                f"{str(path)!r} has no column of the {meant} time ({' or '.join(names)}). A job log is what"
                f" sacct --parsable2 --format={SACCT_FORMAT} prints,"
                " a CSV file with columns submit, start, gpus, walltime, queue and user, SWF, or kubectl's"
                " JSON."
            )


ABSENT = frozenset({"", "-1", "unknown", "none", "n/a", "unlimited", "partition_limit", "invalid"})

_MOST_S = 1e11
"""Since 1970: the year 5138. Milliseconds since 1970 lie beyond."""

Readings = tuple[float, ...]
"""Seconds since 1970: none of a time that the log does not know, two in the hour that a clock repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a job entered the queue, started and ended; None where the log does not tell."""

    entered_s: float
    start_s: float | None
    end_s: float | None
    is_certain: bool = True
    """Whether the clock leaves one reading of the wait."""


def readings_s(text: str, name: str, zone: tzinfo | None) -> Readings:
    """What an ISO time (in ``zone``, or here) or a number of seconds may mean, the earliest first.

    Raises ValueError: it is neither a time nor absent.
    """
    if text.lower() in ABSENT:
        return ()
    if (number := finite(text)) is not None:
        if abs(number) > _MOST_S:
            raise ValueError(f"{name} {text[:40]!r} is no number of seconds: is it in milliseconds?")
        return (number,)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return (moment.timestamp(),)
        first, second = (moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{name} {text!r} is no time such as 2026-03-01T12:00:00, nor seconds") from None
    # In the hour that spring skips the second reading is the earlier one, and no clock shows either.
    return (first, second) if first < second else (first,)


def times_of(
    submit: Readings, eligible: Readings, start: Readings, end: Readings, run_s: float | None
) -> Times:
    """The times of one job by all their readings; a wait counts from when it could have started.

    One reading of ``submit`` at least; ``eligible`` is when it was no longer held nor waited for another job,
    ``start`` none of a job that never started.
    """
    entered = sorted({max(times) for times in product(submit, eligible)} if eligible else set(submit))
    if not start:
        return Times(entered_s=entered[-1], start_s=None, end_s=end[-1] if end else None)
    if len(start) > 1 and run_s is not None:
        # Readings that agree with the end and the run time, or all.
        start = tuple(s for s in start if any(abs(e - s - run_s) <= MINUTE_S for e in end)) or start
    waits = sorted((s - e, s) for s in start for e in entered)
    possible = [(wait_s, start_s) for wait_s, start_s in waits if wait_s >= 0] or waits[-1:]
    wait_s, start_s = possible[0]
    last = next((e for e in end if e >= start_s), end[-1]) if end else None
    return Times(
        entered_s=start_s - wait_s,
        start_s=start_s,
        end_s=last if last is not None or run_s is None else start_s + run_s,
        is_certain=possible[-1][0] == wait_s,
    )


def finite(text: str) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# JSON of kubectl -> rows.

KUEUE = ("kubectl", "get", "workloads.kueue.x-k8s.io", "--all-namespaces", "--output=json")
VOLCANO = ("kubectl", "get", "jobs.batch.volcano.sh", "--all-namespaces", "--output=json")
_ENDED = {"Completed", "Failed", "Terminated", "Aborted"}


def _kubernetes_rows(text: TextIO) -> Iterator[tuple[int, dict[str, str] | ValueError]]:
    """Number of each item of a list, and its row or what is wrong with it; one item without a list.

    Raises ValueError: no JSON.
    """
    alone: dict[str, Any] = {}
    for name, value in read_members(text, streamed="items"):
        alone[name] = value
        for number, item in enumerate(value if name == "items" and isinstance(value, Iterator) else (), 1):
            yield number, _row_of(item)
    if "items" not in alone:
        yield 1, _row_of(alone)


def _row_of(item: Any) -> dict[str, str] | ValueError:
    try:
        return _ROWS[item["apiVersion"].partition("/")[0], item["kind"]](item)
    except (KeyError, TypeError, AttributeError, ValueError):
        return ValueError(
            "it is neither a Workload of Kueue nor a Job of Volcano, as `kubectl get -o json` prints them"
        )


def _workload(item: dict[str, Any]) -> dict[str, str]:
    """One that was evicted waits anew from when it was put back; one that is not active is held."""
    spec, conditions = item["spec"], _conditions(item)
    since = {one["type"]: one["lastTransitionTime"] for one in conditions if one["status"] == "True"}
    eligible = since.get("Requeued", since.get("Evicted"))
    if spec.get("active") is False:
        eligible = ""
    pods = [(one.get("count", 1), one["template"]["spec"]) for one in spec["podSets"] or ()]
    return _row(
        item,
        pods,
        queue=spec.get("queueName", ""),
        walltime=spec.get("maximumExecutionTimeSeconds"),
        start=since.get("Admitted", ""),
        end=since.get("Finished", ""),
    ) | ({} if eligible is None else {"eligible": eligible})


def _volcano_job(item: dict[str, Any]) -> dict[str, str]:
    """One that was restarted counts with its first start."""
    spec, conditions = item["spec"], _conditions(item)
    times = [(one["status"], one["lastTransitionTime"]) for one in conditions]
    pods = [(one.get("replicas", 1), one["template"]["spec"]) for one in spec["tasks"] or ()]
    return _row(
        item,
        pods,
        queue=spec.get("queue", ""),
        start=next((time for status, time in times if status == "Running"), ""),
        end=times[-1][1] if times and times[-1][0] in _ENDED else "",
    )


def _row(
    item: dict[str, Any],
    pods: Sequence[tuple[int, dict[str, Any]]],
    *,
    walltime: int | None = None,
    **facts: object,
) -> dict[str, str]:
    """Without a walltime of its own, that of the pod that may run longest."""
    metadata, limits = item["metadata"], [pod.get("activeDeadlineSeconds") or 0 for _, pod in pods]
    row = {
        "submit": metadata["creationTimestamp"],
        "user": metadata["namespace"],
        "gpus": sum(count * _gpus(container) for count, pod in pods for container in pod["containers"]),
        "walltime": walltime or max(limits, default=0) or None,
        **facts,
    }
    return {name: "" if value is None else str(value) for name, value in row.items()}


def _conditions(item: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """None yet, or null, of what was just made."""
    return (item.get("status") or {}).get("conditions") or ()


def _gpus(container: dict[str, Any]) -> int:
    """Requests of such a resource are its limits, and either may stand alone."""
    resources = container.get("resources") or {}
    asked = (resources.get("requests") or {}) | (resources.get("limits") or {})
    return sum(int(count) for name, count in asked.items() if name.endswith("/gpu"))


_ROWS = {("kueue.x-k8s.io", "Workload"): _workload, ("batch.volcano.sh", "Job"): _volcano_job}
