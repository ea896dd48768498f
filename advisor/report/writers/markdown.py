"""The tables of a document for GitHub and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from advisor.report.document import Block, Document, Section, Table
from advisor.report.plain import Shown, shown
from advisor.report.writers.words import row_texts, words_alone

# A `<` or `&` that begins no tag, address or entity is itself, and so is a `_` inside a word.
_ACTIVE = re.compile(r"[\\|`\[\]*~]|<(?=[A-Za-z/!?])|&(?=#?\w)|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def to_markdown(document: Document) -> Shown:
    """Each table as a GitHub table; a letter with its words and titles."""
    if document.is_letter:
        return Shown("\n\n".join(_letter(document.blocks)))
    tables = list(document.tables())
    if not tables and (sheet := document.spreadsheet()) is not None:
        tables = [sheet]
    if not tables:
        return Shown(_inline(words_alone(document)))
    return Shown("\n\n".join(map(_table, tables)))


def _letter(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Table):
            if block.caption:
                yield f"#### {_inline(block.caption)}"
            yield _table(block)
        elif isinstance(block, Section):
            yield _inline(block.title)
            if block.entries:
                yield "\n".join(f"- {_inline(str(entry))}" for entry in block.entries)


def _table(table: Table) -> str:
    head = _line(column.name for column in table.columns), _line("---" for _ in table.columns)
    caption = [f"**{_inline(shown(table.caption))}**", ""] if table.caption else []
    return "\n".join([*caption, *head, *(_line(row_texts(row, table)) for row in table.rows)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_inline(cell).replace(chr(10), '<br>') for cell in cells)} |"


def _inline(text: str) -> str:
    """Text that Markdown neither formats nor takes for HTML."""
    return _ACTIVE.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), text)
