"""What several writers do alike: cells that are safe to print, and lines where there are no rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from advisor.report.cells import cell_lines
from advisor.report.document import Document, Entry, Fact, Lines, Row, Sum, Table
from advisor.report.plain import Shown, stacked


def row_texts(row: Row, table: Table) -> list[Shown]:
    """Each cell in the words of its kind, its lines one below the other."""
    pairs = zip(row.cells, table.columns, strict=True)
    return [stacked(*cell_lines(cell, column.kind)) for cell, column in pairs]


def words_alone(document: Document) -> Shown:
    """The lines of a document without rows, for formats of rows."""
    return stacked(*(line for block in document.blocks if isinstance(block, Lines) for line in block.lines))


def entry_lines(entry: Entry) -> Iterator[str]:
    """A text, or names with what stands behind them; not yet safe to print."""
    match entry:
        case str():
            yield entry
        case Fact():
            yield from entry_lines(Sum((entry,)))
        case Sum():
            widest = max(len(fact.value) for fact in entry.facts)
            for fact in entry.facts:
                yield f"{fact.name:<{entry.name_width}}{fact.value:>{widest}}  {fact.note}".rstrip()
        case _:
            assert_never(entry)
