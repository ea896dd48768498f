"""Bills as files: CSV, gzip or Parquet, row by row, into charges."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from advisor.core.errors import BillError
from advisor.formats import foreign_files
from advisor.spend import cells, focus, gcp_export
from advisor.spend.cells import Row
from advisor.spend.charges import USD, Bill, Charge, RowFault

if TYPE_CHECKING:
    from datetime import datetime

    from pyarrow.parquet import FileMetaData


Read: TypeAlias = "tuple[int, Row] | RowFault"
_PARQUET = b"PAR1"
MOST_PARQUET_ROWS = 3_000_000
_PARQUET_ROWS = 10_000
_ALWAYS_BYTES = 2**24


def rows_of(path: Path) -> Iterator[Read]:
    """Each row with its line, or what is wrong with it. Raises BillError: no whole table."""
    begin = foreign_files.first_bytes(path, 64)
    if begin.startswith(_PARQUET):
        return _parquet_rows(path)
    return _text_rows(path, begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1])


def _text_rows(path: Path, first: bytes) -> Iterator[Read]:
    try:
        with (
            foreign_files.open_unpacked(path) as file,
            io.TextIOWrapper(file, "utf-8-sig", newline="") as lines,
        ):
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
        foreign_files.check_once("column", columns)
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
    while line := lines.readline(foreign_files.MOST_CHARACTERS):
        number += 1
        if len(line) == foreign_files.MOST_CHARACTERS:
            raise ValueError(f"line {number:,} has {foreign_files.MOST_CHARACTERS:,} characters or more")
        if line.strip():
            yield _object(number, line)


def _object(number: int, line: str) -> Read:
    try:
        value = foreign_files.read_json(line, parse_float=Decimal)
    except ValueError as error:
        return RowFault(line=number, reason=f"no JSON object ({error}): the line is cut off or damaged")
    if isinstance(value, dict):
        return number, value
    return RowFault(line=number, reason="no JSON object")


def _list_rows(lines: io.TextIOWrapper) -> Iterator[Read]:
    try:
        for _, values in foreign_files.read_members(lines, streamed=""):
            for number, value in enumerate(values if isinstance(values, Iterator) else (), start=1):
                is_row = isinstance(value, dict)
                yield (number, value) if is_row else RowFault(line=number, reason="no JSON object")
    except ValueError as error:
        raise ValueError(f"its list of rows is cut off or damaged ({error})") from None


def _check_parquet(path: Path, metadata: FileMetaData) -> None:
    """Refuse a file that would unpack to very much more than it holds. Raises BillError: it would."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    most_bytes = max(_ALWAYS_BYTES, foreign_files.MOST_RATIO * path.stat().st_size)
    if sum(group.total_byte_size for group in groups) > most_bytes or metadata.num_rows > MOST_PARQUET_ROWS:
        raise BillError(
            f"{str(path)!r} unpacks to more than {foreign_files.MOST_RATIO} times its size, or to more than"
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


KINDS = (
    "a FOCUS 1.x file (CSV, JSON or Parquet) or Google Cloud's billing export from BigQuery (JSON, CSV or"
    " Parquet)"
)


MOST_ROWS = 3_000_000
"""A row takes a kilobyte while it is looked at."""
MOST_FAULTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of file."""

    name: str
    marks: Sequence[str]
    """Columns that no other kind has, some of which a file has even if it lacks others."""
    named: Callable[[Row], Row]
    """A row under the names of ``marks``."""
    missing: Callable[[Collection[str]], list[str]]
    """Columns that are needed besides those given."""
    charge_of: Callable[[Row, str], Charge]
    billed: Callable[[Row], Decimal]
    currency: str
    """The column of it, as ``start`` is."""
    start: str

    def num_marks(self, row: Row) -> int:
        """How much a row looks like one of this kind."""
        return sum(name in self.named(row) for name in self.marks)


_KINDS = (
    _Kind(
        name="a FOCUS file",
        marks=focus.REQUIRED,
        named=lambda row: row,
        missing=focus.missing_columns,
        charge_of=focus.charge_of,
        billed=partial(cells.required_amount, column="BilledCost"),
        currency="BillingCurrency",
        start="ChargePeriodStart",
    ),
    _Kind(
        name="a billing export of Google Cloud",
        marks=gcp_export.REQUIRED,
        named=gcp_export.with_dots,
        missing=gcp_export.missing_columns,
        charge_of=gcp_export.charge_of,
        billed=gcp_export.billed_cost,
        currency="currency",
        start="usage_start_time",
    ),
)


def read_bill(path: Path, project_tag: str) -> Bill:
    """The charges of a file; rows that cannot be true are faults of the bill, and left out.

    Raises BillError: the file cannot be read, is of another kind, or lacks a column.
    """
    kind: _Kind | None = None
    charges: list[Charge] = []
    faults: list[RowFault] = []
    for one in rows_of(path):
        if len(charges) + len(faults) >= MOST_ROWS or len(faults) >= MOST_FAULTS:
            raise BillError(_too_many(path, len(charges), faults))
        if isinstance(one, RowFault):
            faults.append(one)
            continue
        line, row = one
        kind = kind or _kind_of(path, row)
        named = kind.named(row)
        try:
            charge = kind.charge_of(named, project_tag)
            charges.append(replace(charge, odd=f"line {line}: {charge.odd}") if charge.odd else charge)
        except ValueError as error:
            faults.append(_fault(kind, line, named, str(error)))
    if kind is None:
        raise BillError(f"{str(path)!r} holds no charge: give {KINDS}.")
    return Bill(name=str(path), charges=tuple(charges), faults=tuple(faults))


def _fault(kind: _Kind, line: int, row: Row, reason: str) -> RowFault:
    """A row that is left out, with its dollars and its time as far as they can be read."""
    usd: Decimal | None = None
    start: datetime | None = None
    with suppress(ValueError):
        start = cells.moment(row, kind.start)
    with suppress(ValueError):
        usd = kind.billed(row) if cells.currency(row, kind.currency) == USD else None
    return RowFault(line=line, reason=reason, usd=usd, start=start)


def _too_many(path: Path, num_charges: int, faults: Sequence[RowFault]) -> str:
    if len(faults) < MOST_FAULTS:
        return f"{str(path)!r} has more than {MOST_ROWS:,} rows: export it in parts, such as by month."
    first = faults[0]
    return (
        f"{len(faults):,} rows of {str(path)!r} cannot be read, and {num_charges:,} can: it is no bill, or it"
        f" is damaged. Line {first.line}: {first.reason}."
    )


def _kind_of(path: Path, row: Row) -> _Kind:
    """The kind that most of the columns speak for. Raises BillError: none does, or a column is missing."""
    kind = max(_KINDS, key=lambda one: one.num_marks(row))
    if not kind.num_marks(row):
        raise BillError(f"{str(path)!r} has none of the columns of a bill: give {KINDS}.")
    missing = kind.missing(kind.named(row).keys())
    if missing:
        raise BillError(
            f"{str(path)!r} looks like {kind.name} without {', '.join(missing)}: export it with"
            " these columns."
        )
    return kind
