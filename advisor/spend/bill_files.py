"""A file of charges, of whichever kind it is -> a bill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import BillError
from advisor.spend import focus, gcp_export
from advisor.spend.cells import Row
from advisor.spend.charges import Bill, Charge, RowFault
from advisor.spend.rows import rows_of

KINDS = (
    "a FOCUS 1.x file (CSV, JSON or Parquet) or Google Cloud's billing export from BigQuery (JSON, CSV or"
    " Parquet)"
)


MOST_ROWS = 3_000_000
"""A row takes a kilobyte while it is looked at."""
MOST_FAULTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of file.

    Attributes:
        marks: columns that no other kind has, some of which a file has even if it lacks others.
        named: a row under the names of ``marks``.
        missing: columns that are needed besides those given.
    """

    name: str
    marks: Sequence[str]
    named: Callable[[Row], Row]
    missing: Callable[[Collection[str]], list[str]]
    charge_of: Callable[[Row, str], Charge]

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
    ),
    _Kind(
        name="a billing export of Google Cloud",
        marks=gcp_export.REQUIRED,
        named=gcp_export.with_dots,
        missing=gcp_export.missing_columns,
        charge_of=gcp_export.charge_of,
    ),
)


def read_bill(path: Path, project_tag: str) -> Bill:
    """The charges of a file; rows that cannot be true are faults of the bill, and left out.

    Args:
        path: of the file.
        project_tag: the tag or label that names a charge's project.

    Raises:
        BillError: the file cannot be read, is of another kind, or lacks a column.
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
        try:
            charges.append(kind.charge_of(kind.named(row), project_tag))
        except ValueError as error:
            faults.append(RowFault(line=line, reason=str(error)))
    if kind is None:
        raise BillError(f"{str(path)!r} holds no charge: give {KINDS}.")
    return Bill(name=str(path), charges=tuple(charges), faults=tuple(faults))


def _too_many(path: Path, num_charges: int, faults: Sequence[RowFault]) -> str:
    if len(faults) < MOST_FAULTS:
        return f"{str(path)!r} has more than {MOST_ROWS:,} rows: export it in parts, such as by month."
    first = faults[0]
    return (
        f"{len(faults):,} rows of {str(path)!r} cannot be read, and {num_charges:,} can: it is no bill, or it"
        f" is damaged. Line {first.line}: {first.reason}."
    )


def _kind_of(path: Path, row: Row) -> _Kind:
    """The kind that most of the columns speak for.

    Raises:
        BillError: none does, or a column is missing.
    """
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
