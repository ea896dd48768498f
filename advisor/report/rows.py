"""A list of rows in each output format; one place knows how a table, CSV or Markdown looks."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from advisor.report.plain import Shown, print_text, shown

SCHEMA_VERSION = "2.0.0"
# Characters of a table beside its cells: both edges, and between two columns.
_EDGES, _GAP = 2, 2
# What a spreadsheet takes for the beginning of a formula, in the wide letters of East Asia, too.
_RUNS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
# A minus that begins a number, or stands for nothing, runs nothing.
_NEGATIVE = re.compile(r"-(?:[\d.,]+(?:e[+-]?\d+)?(?: ?%)?|inf)?")
# A `<` or `&` that begins no tag, address or entity is itself, and so is a `_` inside a word.
_MARKDOWN = re.compile(r"[\\|`\[\]*~]|<(?=[A-Za-z/!?])|&(?=#?\w)|(?<!\w)_|_(?!\w)")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


class Format(StrEnum):
    """What ``--format`` takes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def to_json(body: Mapping[str, Any]) -> Shown:
    """A document with its schema version first; infinite or undefined numbers become null."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **_finite(body)}, indent=2)
    # The one control character of ASCII that JSON lets pass.
    return Shown(text.replace("\x7f", "\\u007f"))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def to_csv(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """RFC 4180 with a header; a text that a spreadsheet would run as a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_inert(cell) for cell in row] for row in rows)
    return out.getvalue().rstrip("\n")


def _inert(cell: str) -> str:
    is_run = cell.startswith(_RUNS) and not _NEGATIVE.fullmatch(cell)
    return f"'{shown(cell)}" if is_run else shown(cell)


def to_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table."""
    cells = ([_inline(cell) for cell in line] for line in (columns, ["---"] * len(columns), *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _inline(cell: str) -> str:
    """Text that Markdown neither formats nor takes for HTML, and that does not end its row."""
    text = _MARKDOWN.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), shown(cell))
    return text.replace("\n", "<br>")


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
        print_text(to_csv(columns, rows))
    elif output is Format.MARKDOWN:
        print_text(to_markdown(columns, rows))
    else:
        kept = frozenset(columns) - wrapping if wrapping is not None else frozenset()
        _print_table(columns, rows, right, styles or [""] * len(rows), kept)


def fits(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapping: frozenset[str] = frozenset()
) -> bool:
    """Whether a table needs to break no word, and no line outside the columns that may wrap."""
    from advisor.report.column_widths import least_widths

    cells = _shown_columns(columns, rows)
    least = least_widths(cells, kept_whole=[column not in wrapping for column in columns])
    return sum(least) <= _available(columns)


def _shown_columns(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(zip(columns, *([shown(cell) for cell in row] for row in rows), strict=True))


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
        _shown_columns(columns, rows),
        _available(columns),
        kept_whole=[column in kept_whole for column in columns],
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column in kept_whole, width=width)
    for row, style in zip(rows, styles, strict=True):
        # As Text: rich would read colours, links and emoji into a str.
        table.add_row(*(Text(shown(cell)) for cell in row), style=style)
    console().print(table)


def print_wrapped(title: str, lines: Sequence[str]) -> None:
    """A title and indented lines to stdout, broken between words where the terminal ends."""
    import textwrap

    # Names and paths have hyphens and must stay whole, to be copied.
    wrapper = textwrap.TextWrapper(console().width, break_on_hyphens=False, break_long_words=False)
    for indent, text in (("", title), *(("  ", line) for line in lines)):
        wrapper.initial_indent, wrapper.subsequent_indent = indent, "    "
        print_text(wrapper.fill(shown(text)))


def console() -> Any:
    """stdout: colours on a terminal (NO_COLOR is honoured), no cut columns in a file or a pipe."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=int(_columns_of_environment() or 160))


def _columns_of_environment() -> str | None:
    import os

    columns = os.environ.get("COLUMNS", "")
    return columns if columns.isdecimal() and int(columns) > 0 else None
