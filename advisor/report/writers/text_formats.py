"""A document as CSV, JSON and Markdown."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from json.encoder import encode_basestring_ascii
from typing import assert_never

from advisor.core.files import as_text
from advisor.report import document as doc
from advisor.report.plain import Shown, shown, stacked


def row_texts(row: doc.Row, table: doc.Table) -> list[Shown]:
    """Each cell in the words of its kind, its lines one below the other."""
    pairs = zip(row.cells, table.columns, strict=True)
    return [stacked(*doc.cell_lines(cell, column.kind)) for cell, column in pairs]


def words_alone(document: doc.Document) -> Shown:
    """The lines of a document without rows, for formats of rows."""
    return stacked(
        *(line for block in document.blocks if isinstance(block, doc.Lines) for line in block.lines)
    )


def entry_lines(entry: doc.Entry) -> Iterator[str]:
    """A text, or names with what stands behind them; not yet safe to print."""
    match entry:
        case str():
            yield entry
        case doc.Fact():
            yield from entry_lines(doc.Sum((entry,)))
        case doc.Sum():
            widest = max(len(fact.value) for fact in entry.facts)
            for fact in entry.facts:
                yield f"{fact.name:<{entry.name_width}}{fact.value:>{widest}}  {fact.note}".rstrip()
        case _:
            assert_never(entry)


# What a spreadsheet takes for the beginning of a formula, in the wide letters of East Asia, too.
_RUNS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
# A minus that begins a number, or stands for nothing, runs nothing.
_NEGATIVE = re.compile(r"-(?:[\d.,]+(?:e[+-]?\d+)?(?: ?%)?|inf)?")


def to_csv(document: doc.Document) -> Shown:
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


def _inert(cell: doc.Cell, kind: doc.Kind) -> str:
    if cell is None:  # a spreadsheet adds up numbers, and a dash is none
        return ""
    lines = doc.cell_lines(cell, kind)
    text = "\n".join(lines)
    is_run = text.startswith(_RUNS) and not _NEGATIVE.fullmatch(text)
    return f"'{stacked(*lines)}" if is_run else stacked(*lines)


SCHEMA_VERSION = "2.2.0"


def to_json(facts: Mapping[str, object]) -> Shown:
    """A document with its schema version first; infinite or undefined numbers become null."""
    text = _as_json({"schema_version": SCHEMA_VERSION, **facts}, "\n")
    # The one control character of ASCII that JSON lets pass.
    return Shown(text.replace("\x7f", "\\u007f"))


def _as_json(value: object, margin: str) -> str:
    """As `json.dumps` indents it, which takes half as long again and has neither our nulls nor our texts."""
    if isinstance(value, str):
        return encode_basestring_ascii(as_text(value))
    if isinstance(value, float):
        return float.__repr__(value) if abs(value) < float("inf") else "null"
    inner = margin + "  "
    if isinstance(value, Mapping):
        ends = "{}"
        parts = [f"{_as_json(str(key), inner)}: {_as_json(item, inner)}" for key, item in value.items()]
    elif isinstance(value, list | tuple):
        ends, parts = "[]", [_as_json(item, inner) for item in value]
    else:
        return json.dumps(value)
    return f"{ends[0]}{inner}{f',{inner}'.join(parts)}{margin}{ends[1]}" if parts else ends


# A `<` or `&` that begins no tag, address or entity is itself, and so is a `_` inside a word.
_ACTIVE = re.compile(r"[\\|`\[\]*~]|<(?=[A-Za-z/!?])|&(?=#?\w)|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def to_markdown(document: doc.Document) -> Shown:
    """Each table as a GitHub table; a letter with its words and titles."""
    if document.is_letter:
        return Shown("\n\n".join(_letter(document)))
    tables = list(document.tables())
    if not tables and (sheet := document.spreadsheet()) is not None:
        tables = [sheet]
    if not tables:
        return Shown(_inline(words_alone(document)))
    return Shown("\n\n".join(map(_table, tables)))


def _letter(document: doc.Document) -> Iterator[str]:
    """Its tables and sections; lines are what a terminal has in place of captions."""
    yield f"### {_text(document.title)}"
    for block in document.blocks:
        if isinstance(block, doc.Table):
            yield _table(block)
        elif isinstance(block, doc.Section):
            entries = [f"- {_text(line)}" for entry in block.entries for line in entry_lines(entry)]
            yield f"**{_text(block.title)}**" if entries else _text(block.title)
            if entries:
                yield "\n".join(entries)


def _table(table: doc.Table) -> str:
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
