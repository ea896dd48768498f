"""The tables of a document for GitHub and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from advisor.report.document import Document, Section, Table
from advisor.report.plain import Shown, shown
from advisor.report.writers.words import entry_lines, row_texts, words_alone

# A `<` or `&` that begins no tag, address or entity is itself, and so is a `_` inside a word.
_ACTIVE = re.compile(r"[\\|`\[\]*~]|<(?=[A-Za-z/!?])|&(?=#?\w)|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def to_markdown(document: Document) -> Shown:
    """Each table as a GitHub table; a letter with its words and titles."""
    if document.is_letter:
        return Shown("\n\n".join(_letter(document)))
    tables = list(document.tables())
    if not tables and (sheet := document.spreadsheet()) is not None:
        tables = [sheet]
    if not tables:
        return Shown(_inline(words_alone(document)))
    return Shown("\n\n".join(map(_table, tables)))


def _letter(document: Document) -> Iterator[str]:
    """Its tables and sections; lines are what a terminal has in place of captions."""
    yield f"### {_text(document.title)}"
    for block in document.blocks:
        if isinstance(block, Table):
            yield _table(block)
        elif isinstance(block, Section):
            entries = [f"- {_text(line)}" for entry in block.entries for line in entry_lines(entry)]
            yield f"**{_text(block.title)}**" if entries else _text(block.title)
            if entries:
                yield "\n".join(entries)


def _table(table: Table) -> str:
    head = _line(column.name for column in table.columns), _line("---" for _ in table.columns)
    caption = [f"**{_text(table.caption)}**", ""] if table.caption else []
    return "\n".join([*caption, *head, *(_line(row_texts(row, table)) for row in table.rows)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_inline(cell).replace(chr(10), '<br>') for cell in cells)} |"


def _text(text: str) -> str:
    return _inline(shown(text))


def _inline(text: str) -> str:
    """Text that Markdown neither formats nor takes for HTML."""
    return _ACTIVE.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), text)
