"""A document in a terminal: tables as wide as it is, text broken between words, charts of letters."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, assert_never

from advisor.report.document import (
    NAME_WIDTH,
    Block,
    Chart,
    Document,
    Lines,
    Section,
    Table,
)
from advisor.report.plain import Shown, shown, shown_code
from advisor.report.writers.words import entry_lines

if TYPE_CHECKING:
    from rich.console import Console

_INDENT = "  "
# Where a value begins: its further lines do, too.
_HANGING = " " * (len(_INDENT) + NAME_WIDTH)
# Below, sentences with names and paths in them are left to the terminal.
_LEAST_WIDTH = 50
# Of a file or a pipe, unless COLUMNS says otherwise: whoever reads it has no fewer.
_NOT_A_TERMINAL = 80


class Screen:
    """stdout: as wide as the terminal, with its colours (NO_COLOR is honoured); 80 in a file or a pipe.

    Args:
        width: characters a line may take, instead of those there are; then it is no terminal.
    """

    def __init__(self, width: int | None = None) -> None:
        self._asked = width

    @cached_property
    def console(self) -> Console:
        """Made for the first block that needs it: rich takes longer to import than lines to print."""
        from rich.console import Console

        if self._asked is not None:
            return Console(highlight=False, width=self._asked, file=io.StringIO(), force_terminal=False)
        if sys.stdout.isatty():
            return Console(highlight=False)
        return Console(highlight=False, width=_columns_of_environment() or _NOT_A_TERMINAL)

    @property
    def width(self) -> int:
        """Characters a line may take."""
        return self.console.width


def to_terminal(document: Document, screen: Screen | None = None) -> Shown:
    """Every block, one below the other."""
    return Shown("\n".join(_blocks(document.blocks, screen or Screen())))


def _blocks(blocks: Iterable[Block], screen: Screen) -> Iterator[str]:
    for block in blocks:
        match block:
            case Table():
                yield from _table(block, screen)
            case Lines():
                yield from map(shown_code if block.are_code else shown, block.lines)
            case Section():
                yield from _section(block, screen.width)
            case Chart():
                yield from _chart(block, screen.width)
            case _:
                assert_never(block)


def _table(table: Table, screen: Screen) -> Iterator[str]:
    from advisor.report.writers.terminal_table import Layout

    if table.narrow and screen.width < table.narrow_below:
        yield from _blocks(table.narrow, screen)
        return
    layout = Layout(table, screen.console)
    if table.narrow and table.keeps_words and not layout.fits():
        yield from _blocks(table.narrow, screen)
    else:
        yield layout.text()


def _section(section: Section, width: int) -> Iterator[str]:
    yield _folded(section.title, width, hanging=_INDENT * 2)
    for entry in section.entries:
        hanging = _INDENT * 2 if isinstance(entry, str) else _HANGING
        yield from (_folded(line, width, indent=_INDENT, hanging=hanging) for line in entry_lines(entry))


def _folded(text: str, width: int, *, indent: str = "", hanging: str) -> str:
    line = indent + shown(text)
    if len(line) <= width:
        return line
    # Names and paths have hyphens and must stay whole, to be copied.
    return textwrap.fill(
        line,
        max(width, _LEAST_WIDTH),
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _chart(chart: Chart, width: int) -> Iterator[str]:
    from advisor.report.writers.plot import draw_chart

    for line in draw_chart(chart, width):
        yield line if len(line) <= width else textwrap.fill(line, width, subsequent_indent=_INDENT)


def _columns_of_environment() -> int | None:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) or None if columns.isdecimal() else None
