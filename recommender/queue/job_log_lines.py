"""The three forms a job log comes in -> rows by column name, with their line numbers.

- ``sacct --parsable2``: a header, fields between ``|``, nothing quoted
- CSV: a header, RFC 4180
- SWF, the Standard Workload Format (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): 18 numbers a
  line and no header; ``;`` starts a comment
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from advisor.core.errors import InputError
from advisor.formats.foreign_files import open_unpacked
from advisor.formats.strict_json import check_once
from recommender.queue.job_log_fields import START, SUBMIT

MOST_LINES = 1_000_000
"""Ten seconds of reading. The newest jobs tell most: a fit takes the last 8,000."""

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
    """Line number and row, or what is wrong with the line; column names in lower case.

    Raises:
        InputError: the file is empty, too long or has no header that we know.
        OSError, EOFError, UnicodeDecodeError, ValueError, zlib.error: it cannot be read.
    """
    _check_length(path)
    with _opened(path) as text:
        first = next((line for line in _lines(text) if line.strip()), "")
    with _opened(path) as text:
        if _is_swf(first):
            yield from _swf_rows(_lines(text))
        else:
            yield from _table_rows(_lines(text), "|" if "|" in first else ",", path, _check_header)


def table_rows(
    path: Path, check_header: Callable[[list[str], Path], None]
) -> Iterator[tuple[int, Row | ValueError]]:
    """Line number and row of a CSV file, or what is wrong with the line; column names in lower case.

    Args:
        path: of the file, gzipped or not.
        check_header: raises InputError where columns are missing.

    Raises:
        InputError: the file is empty, too long or has another header.
        OSError, EOFError, UnicodeDecodeError, ValueError, zlib.error: it cannot be read.
    """
    _check_length(path)
    with _opened(path) as text:
        yield from _table_rows(_lines(text), ",", path, check_header)


def _opened(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_unpacked(path), "utf-8-sig", newline="")


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(_MOST_CHARACTERS + 1):
        if len(line) > _MOST_CHARACTERS:
            raise ValueError(f"it has a line of more than {_MOST_CHARACTERS / 1e6:.0f} million characters")
        yield line


def _check_length(path: Path) -> None:
    """Count before anything is kept: a small gzip may hold any number of lines."""
    num_lines = 0
    with open_unpacked(path) as file:
        while piece := file.read(_MOST_CHARACTERS):
            num_lines += max(piece.count(b"\n"), piece.count(b"\r"))
            if num_lines > MOST_LINES:
                raise InputError(
                    f"{str(path)!r} has more than {MOST_LINES:,} lines: keep the newest, such as the last"
                    " months by sacct --starttime."
                )


def _is_swf(first: str) -> bool:
    return first.lstrip().startswith(";") or (
        len(first.split()) == len(_SWF) and "," not in first and "|" not in first
    )


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
                " a CSV file with columns submit, start, gpus, walltime, queue and user, or SWF."
            )
