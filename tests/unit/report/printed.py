"""What a document looks like in a format, read back."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from advisor.report.document import Block, Column, Document, Row, Table
from advisor.report.printing import Format, text_of
from advisor.report.writers.terminal import Screen, to_terminal


def rows_of(document: Document) -> list[dict[str, str]]:
    """What a spreadsheet reads: rows by column."""
    return list(csv.DictReader(io.StringIO(text_of(document, Format.CSV))))


def json_of(document: Document) -> Any:
    """What a program reads."""
    return json.loads(text_of(document, Format.JSON))


def on_screen(document: Document, width: int) -> str:
    """What a terminal shows."""
    return to_terminal(document, Screen(width))


def of(*blocks: Block, **changes: Any) -> Document:
    """A document of blocks alone."""
    return Document(**({"facts": {}, "blocks": blocks} | changes))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Document:
    """A document that is one table of texts."""
    return of(Table(columns=tuple(map(Column, columns)), rows=tuple(Row(tuple(row)) for row in rows)))
