"""Catalogs as CSV: the same columns in each file of a kind, and errors that name file and line."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path

from advisor.core.errors import CatalogError


def read_rows(path: Path, columns: tuple[str, ...], read_row: Callable[[list[str]], None]) -> None:
    """Calls ``read_row`` with the fields of each row.

    Raises:
        CatalogError: the file is missing, has other columns, or ``read_row`` raised ValueError for a row; it
            names file and line.
    """
    line = 1
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            if (header := tuple(next(rows, ()))) != columns:
                raise ValueError(f"the columns are {','.join(header)}, not {','.join(columns)}")
            for row in rows:
                line = rows.line_num
                if len(row) != len(columns):
                    raise ValueError(f"{len(row)} fields instead of {len(columns)}")
                read_row(row)
    except OSError as error:
        raise CatalogError(f"cannot read the catalog file {path}: {error}") from error
    except (ValueError, csv.Error) as error:
        raise CatalogError(
            f"{path}, line {line}: {error}. Build the catalog again or reinstall gpu-advisor."
        ) from error


def positive(column: str, value: float) -> float:
    """The value, if it is a finite number above 0.

    Raises:
        ValueError: names the column.
    """
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{column} is {value:g}: it must be above 0 (0 means unknown, never free)")
    return value


@cache
def parse_date(text: str) -> date:
    """``"2026-08-03"``; kept, since thousands of rows share a few dates."""
    return date.fromisoformat(text)
