"""A file -> its rows: CSV, JSON (one object a line, or a list of them) or Parquet, packed by gzip or not."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

from advisor.core.errors import BillError
from advisor.formats.foreign_files import first_bytes, open_unpacked
from advisor.spend.cells import Row
from advisor.spend.charges import RowFault

Read: TypeAlias = "tuple[int, Row] | RowFault"
_PARQUET = b"PAR1"
_MOST_BYTES_OF_A_LIST = 2**28


def rows_of(path: Path) -> Iterator[Read]:
    """Each row with its line, or what is wrong with it.

    Raises:
        BillError: the file cannot be read, is cut off, or is no table.
    """
    begin = first_bytes(path, 64)
    if begin.startswith(_PARQUET):
        return _parquet_rows(path)
    return _text_rows(path, is_json=begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["))


def _text_rows(path: Path, *, is_json: bool) -> Iterator[Read]:
    try:
        with open_unpacked(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
            yield from _json_rows(lines) if is_json else _csv_rows(lines)
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


def _json_rows(lines: io.TextIOWrapper) -> Iterator[Read]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if line.lstrip().startswith("["):
            yield from _list_rows(line + lines.read(_MOST_BYTES_OF_A_LIST))
            return
        yield _object(number, line)


def _object(number: int, line: str) -> Read:
    try:
        value = json.loads(line, parse_float=Decimal)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return number, value
    return RowFault(line=number, reason="no JSON object: the line is cut off or damaged")


def _list_rows(text: str) -> Iterator[Read]:
    try:
        values = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its list of rows is cut off or damaged ({error})") from None
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield number, value
        else:
            yield RowFault(line=number, reason="no JSON object")


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
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (ArrowException, OSError) as error:
        raise BillError(f"{str(path)!r} is no whole Parquet file: copy or export it again.") from error
