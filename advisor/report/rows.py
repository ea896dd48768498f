"""A list of rows in each output format; one place knows how a table, CSV or Markdown looks."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

SCHEMA_VERSION = "1.0.0"
# Characters of a table beside its cells: both edges, and between two columns.
_EDGES, _GAP = 2, 2


class Format(StrEnum):
    """What ``--format`` takes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def to_json(body: Mapping[str, Any]) -> str:
    """A document with its schema version first; infinite or undefined numbers become null."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **_finite(body)}, indent=2)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def to_csv(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """RFC 4180 with a header; a leading ``=``, ``+`` or ``@`` is kept from running as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_inert(cell) for cell in row] for row in rows)
    return out.getvalue().rstrip("\n")


def _inert(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "@") else cell


def to_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in line)} |" for line in lines)


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    output: Format,
    *,
    right: frozenset[str] = frozenset(),
    styles: Sequence[str] | None = None,
    wrapping: frozenset[str] | None = None,
) -> None:
    """Rows to stdout.

    Args:
        columns: headings.
        rows: a text for each column.
        output: any format but JSON.
        right: columns of numbers.
        styles: a rich style for each row of a table.
        wrapping: columns that may take more lines where the terminal is narrow; all by default.
    """
    if output is Format.CSV:
        print(to_csv(columns, rows))
    elif output is Format.MARKDOWN:
        print(to_markdown(columns, rows))
    else:
        kept = frozenset(columns) - wrapping if wrapping is not None else frozenset()
        _print_table(columns, rows, right, styles or [""] * len(rows), kept)


def fits(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapping: frozenset[str] = frozenset()
) -> bool:
    """Whether a table needs to break no word, and no line outside the columns that may wrap."""
    from advisor.report.column_widths import least_widths

    cells = list(zip(columns, *rows, strict=True))
    least = least_widths(cells, kept_whole=[column not in wrapping for column in columns])
    return sum(least) <= _available(columns)


def _available(columns: Sequence[str]) -> int:
    """Characters that the terminal has for the cells of a table."""
    return int(console().width) - _EDGES - _GAP * (len(columns) - 1)


def _print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[str],
    styles: Sequence[str],
    kept_whole: frozenset[str],
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from advisor.report.column_widths import column_widths

    widths = column_widths(
        list(zip(columns, *rows, strict=True)),
        _available(columns),
        kept_whole=[column in kept_whole for column in columns],
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column in kept_whole, width=width)
    for row, style in zip(rows, styles, strict=True):
        table.add_row(*(Text(cell) for cell in row), style=style)
    console().print(table)


def print_wrapped(title: str, lines: Sequence[str]) -> None:
    """A title and indented lines to stdout, broken between words where the terminal ends."""
    import textwrap

    # Names and paths have hyphens and must stay whole, to be copied.
    wrapper = textwrap.TextWrapper(console().width, break_on_hyphens=False, break_long_words=False)
    for indent, text in (("", title), *(("  ", line) for line in lines)):
        wrapper.initial_indent, wrapper.subsequent_indent = indent, "    "
        print(wrapper.fill(text))


def console() -> Any:
    """stdout: colours on a terminal (NO_COLOR is honoured), no cut columns in a file or a pipe."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=int(_columns_of_environment() or 160))


def _columns_of_environment() -> str | None:
    import os

    columns = os.environ.get("COLUMNS", "")
    return columns if columns.isdigit() and int(columns) > 0 else None
