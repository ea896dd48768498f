"""The rows of a document for a spreadsheet."""

from __future__ import annotations

import csv
import io
import re

from advisor.report.cells import Cell, Kind, cell_lines
from advisor.report.document import Document
from advisor.report.plain import Shown, stacked
from advisor.report.writers.words import words_alone

# What a spreadsheet takes for the beginning of a formula, in the wide letters of East Asia, too.
_RUNS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
# A minus that begins a number, or stands for nothing, runs nothing.
_NEGATIVE = re.compile(r"-(?:[\d.,]+(?:e[+-]?\d+)?(?: ?%)?|inf)?")


def to_csv(document: Document) -> Shown:
    """RFC 4180 with a header; a text that a spreadsheet would run as a formula gets a quote before it."""
    table = document.spreadsheet() or next(document.tables(), None)
    if table is None:
        return words_alone(document)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        cells = zip(row.cells, table.columns, strict=True)
        writer.writerow([_inert(cell, column.kind) for cell, column in cells])
    return Shown(out.getvalue().rstrip("\n"))


def _inert(cell: Cell, kind: Kind) -> str:
    lines = cell_lines(cell, kind)
    text = "\n".join(lines)
    is_run = text.startswith(_RUNS) and not _NEGATIVE.fullmatch(text)
    return f"'{stacked(*lines)}" if is_run else stacked(*lines)
