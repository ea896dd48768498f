"""A document as HTML for notebooks; every text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import assert_never

from advisor.report.cells import cell_lines
from advisor.report.document import (
    Block,
    Chart,
    Column,
    Document,
    Fact,
    Lines,
    Row,
    Section,
    Sum,
    Table,
    Tone,
)
from advisor.report.plain import shown

# Only what reads well on light and dark pages alike.
_STYLES: Mapping[Tone, str] = {
    Tone.BEST: "font-weight: bold",
    Tone.GOOD: "",
    Tone.PLAIN: "",
    Tone.FAINT: "opacity: 0.5",
    Tone.DOUBTFUL: "font-style: italic",
    Tone.BAD: "font-weight: bold",
}


def to_html(document: Document) -> str:
    """Every block, one below the other."""
    return "\n".join(line for block in document.blocks for line in _block(block))


def _block(block: Block) -> Iterator[str]:
    match block:
        case Table():
            yield from _table(block)
        case Lines():
            yield from (f"<p>{_plain(line)}</p>" for line in block.lines if line)
        case Section():
            yield from _section(block)
        case Chart():
            yield from _chart(block)
        case _:
            assert_never(block)


def _table(table: Table) -> Iterator[str]:
    head = "".join(_cell("th", [column.name], column) for column in table.columns)
    yield "<table>"
    if table.caption:
        yield f"<caption>{_plain(table.caption)}</caption>"
    yield from (f"<thead><tr>{head}</tr></thead>", "<tbody>")
    yield from (_row(row, table) for row in table.rows)
    yield from ("</tbody>", "</table>")


def _row(row: Row, table: Table) -> str:
    pairs = zip(row.cells, table.columns, strict=True)
    cells = "".join(_cell("td", cell_lines(cell, column.kind), column) for cell, column in pairs)
    style = _STYLES[row.tone]
    return f'<tr style="{style}">{cells}</tr>' if style else f"<tr>{cells}</tr>"


def _cell(tag: str, lines: list[str], column: Column) -> str:
    side = "right" if column.kind.is_right else "left"
    return f'<{tag} style="text-align: {side}">{"<br>".join(map(_plain, lines))}</{tag}>'


def _section(section: Section) -> Iterator[str]:
    yield from (f"<p>{_plain(section.title)}</p>", "<ul>")
    for entry in section.entries:
        match entry:
            case str():
                yield f"<li>{_plain(entry)}</li>"
            case Fact():
                yield _fact(entry)
            case Sum():
                yield from map(_fact, entry.facts)
            case _:
                assert_never(entry)
    yield "</ul>"


def _fact(fact: Fact) -> str:
    note = f" ({_plain(fact.note)})" if fact.note else ""
    return f"<li>{_plain(fact.name)}: {_plain(fact.value)}{note}</li>"


def _chart(chart: Chart) -> Iterator[str]:
    """A drawing of letters until a page of its own needs more."""
    from advisor.report.writers.plot import draw_chart

    yield f"<pre>{escape(chr(10).join(draw_chart(chart, 100)))}</pre>"


def _plain(text: str) -> str:
    return escape(shown(text))
