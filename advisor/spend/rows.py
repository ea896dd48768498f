"""A file -> its rows: CSV, JSON (one object a line, or a list of them) or Parquet, packed by gzip or not."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from advisor.core.errors import BillError
from advisor.formats.foreign_files import (
    MOST_CHARACTERS,
    MOST_RATIO,
    first_bytes,
    open_unpacked,
    read_members,
)
from advisor.spend.cells import Row
from advisor.spend.charges import RowFault

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

Read: TypeAlias = "tuple[int, Row] | RowFault"
_PARQUET = b"PAR1"
MOST_PARQUET_ROWS = 3_000_000
_PARQUET_ROWS = 10_000
_ALWAYS_BYTES = 2**24


def rows_of(path: Path) -> Iterator[Read]:
    """Each row with its line, or what is wrong with it.

    Raises:
        BillError: the file cannot be read, is cut off, or is no table.
    """
    begin = first_bytes(path, 64)
    if begin.startswith(_PARQUET):
        return _parquet_rows(path)
    return _text_rows(path, begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1])


def _text_rows(path: Path, first: bytes) -> Iterator[Read]:
    try:
        with open_unpacked(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
            is_json = first in (b"{", b"[")
            yield from _json_rows(lines, is_list=first == b"[") if is_json else _csv_rows(lines)
    except UnicodeDecodeError:
        raise BillError(
            f"{str(path)!r} is no text in UTF-8: export it anew as CSV, JSON or Parquet."
        ) from None
    except (EOFError, zlib.error) as error:
        raise BillError(f"{str(path)!r} is cut off or damaged: copy or export it again.") from error
    except OSError as error:
        raise BillError(f"cannot read {str(path)!r}: {error.strerror or error}.") from error
    except ValueError as error:
        raise BillError(f"cannot read {str(path)!r}: {error}.") from error


def _csv_rows(lines: io.TextIOWrapper) -> Iterator[Read]:
    reader = csv.reader(lines, strict=True)
    try:
        columns = [name.strip() for name in next(reader, [])]
        for values in reader:
            if len(values) == len(columns):
                yield reader.line_num, dict(zip(columns, values, strict=True))
            elif values:
                reason = f"{len(values)} cells under {len(columns)} columns: the line is cut off or torn"
                yield RowFault(line=reader.line_num, reason=reason)
    except csv.Error as error:
        yield RowFault(line=reader.line_num, reason=f"from here on it is no CSV: {error}")


def _json_rows(lines: io.TextIOWrapper, *, is_list: bool) -> Iterator[Read]:
    if is_list:
        yield from _list_rows(lines)
        return
    number = 0
    while line := lines.readline(MOST_CHARACTERS):
        number += 1
        if len(line) == MOST_CHARACTERS:
            raise ValueError(f"line {number:,} has {MOST_CHARACTERS:,} characters or more")
        if line.strip():
            yield _object(number, line)


def _object(number: int, line: str) -> Read:
    try:
        value = json.loads(line, parse_float=Decimal)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return number, value
    return RowFault(line=number, reason="no JSON object: the line is cut off or damaged")


def _list_rows(lines: io.TextIOWrapper) -> Iterator[Read]:
    try:
        for _, values in read_members(lines, streamed=""):
            for number, value in enumerate(values if isinstance(values, Iterator) else (), start=1):
                is_row = isinstance(value, dict)
                yield (number, value) if is_row else RowFault(line=number, reason="no JSON object")
    except ValueError as error:
        raise ValueError(f"its list of rows is cut off or damaged ({error})") from None


def _check_parquet(path: Path, metadata: FileMetaData) -> None:
    """Refuse a file that would unpack to very much more than it holds.

    Raises:
        BillError: it would.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    most_bytes = max(_ALWAYS_BYTES, MOST_RATIO * path.stat().st_size)
    if sum(group.total_byte_size for group in groups) > most_bytes or metadata.num_rows > MOST_PARQUET_ROWS:
        raise BillError(
            f"{str(path)!r} unpacks to more than {MOST_RATIO} times its size, or to more than"
            f" {MOST_PARQUET_ROWS:,} rows: that is no bill. Export it in parts."
        )


def _parquet_rows(path: Path) -> Iterator[Read]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise BillError(
            f"{str(path)!r} is a Parquet file, which needs pyarrow: pip install 'gpu-advisor[parquet]' in"
            " advisor's own environment, or export CSV."
        ) from error
    number = 0
    try:
        with ParquetFile(path) as file:
            _check_parquet(path, file.metadata)
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (ArrowException, OSError) as error:
        raise BillError(f"{str(path)!r} is no whole Parquet file: copy or export it again.") from error
