"""The three forms a job log comes in -> rows by column name, with their line numbers.

- ``sacct --parsable2``: a header, fields between ``|``, nothing quoted
- CSV: a header, RFC 4180
- SWF, the Standard Workload Format (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): 18 numbers a
  line and no header; ``;`` starts a comment
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from advisor.errors import InputError
from recommender.job_log_fields import START, SUBMIT

Row = Mapping[str, str]

# Fields of SWF in order, by the names of the columns of the other forms; "" is not used.
_SWF = (
    "job_id", "submit", "wait", "run", "alloc_cores", "", "", "cores", "walltime", "", "status",
    "", "", "", "queue", "", "", "",
)  # fmt: skip


def rows_of(path: Path) -> Iterator[tuple[int, Row | ValueError]]:
    """Line number and row, or what is wrong with the line; column names in lower case.

    Raises:
        InputError: the file is empty or has no header that we know.
        OSError, EOFError, UnicodeDecodeError: it cannot be read.
    """
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    opened = gzip.open if is_gzip else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
        first = next((line for line in lines if line.strip()), "")
        lines.seek(0)
        if not first:
            raise InputError(f"{str(path)!r} is empty.")
        if _is_swf(first):
            yield from _swf_rows(lines)
        else:
            yield from _table_rows(lines, "|" if "|" in first else ",", path)


def _is_swf(first: str) -> bool:
    return first.lstrip().startswith(";") or (
        len(first.split()) == len(_SWF) and "," not in first and "|" not in first
    )


def _swf_rows(lines: TextIO) -> Iterator[tuple[int, Row | ValueError]]:
    for number, line in enumerate(lines, start=1):
        fields = line.partition(";")[0].split()
        if not fields:
            continue
        if len(fields) != len(_SWF):
            yield number, ValueError(f"{len(fields)} fields, where SWF has {len(_SWF)}")
        else:
            yield number, {name: value for name, value in zip(_SWF, fields, strict=True) if name}


def _table_rows(lines: TextIO, delimiter: str, path: Path) -> Iterator[tuple[int, Row | ValueError]]:
    if delimiter == "|":
        reader = csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip().lower() for name in next(filter(_holds_something, reader), [])]
        _check_header(header, path)
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
                " sacct --parsable2 --format=JobID,Submit,Start,End,Timelimit,ReqTRES,Partition,State prints,"
                " a CSV file with columns submit, start, gpus, walltime and queue, or SWF."
            )
