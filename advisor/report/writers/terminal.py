"""A document for a terminal: lines, and tables as wide as the terminal allows."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice, permutations, zip_longest
from typing import TYPE_CHECKING, assert_never

from rich.cells import cell_len
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from advisor.report.document import NAME_WIDTH, Block, Chart, Column, Document, Lines, Section, Table, Tone
from advisor.report.plain import Shown, shown, shown_code
from advisor.report.writers.plot import draw_chart
from advisor.report.writers.text_formats import entry_lines, row_texts

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod


def column_widths(
    columns: Sequence[Sequence[str]], available: int, *, kept_whole: Sequence[bool]
) -> list[int]:
    """Characters of each column (all its texts), at most ``available`` together: as many as it needs.

    A column keeps room for its longest word, one that must not break for its longest line; what is left goes
    to the columns that still need most, and from one to another where that saves lines. Where even that is
    too much, the widest words are broken, and at last what must not break.
    """
    least = least_widths(columns, kept_whole=kept_whole)
    widths = _leveled(least, available, may_shrink=[not whole for whole in kept_whole])
    needed = list(map(_longest_line, columns))
    rows = list(islice(zip_longest(*columns, fillvalue=""), _JUDGED_BY))
    return _lowered(_filled(widths, needed, available), least, needed, rows)


def least_widths(columns: Sequence[Sequence[str]], *, kept_whole: Sequence[bool]) -> list[int]:
    """Characters with which no word of a column breaks, and no line of one that must not break."""
    return [
        _longest_line(texts) if whole else max(map(len, " ".join(texts).split()), default=0)
        for texts, whole in zip(columns, kept_whole, strict=True)
    ]


def _longest_line(texts: Sequence[str]) -> int:
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _leveled(widths: Sequence[int], available: int, *, may_shrink: Sequence[bool]) -> list[int]:
    """The widest columns lose a character each time until all fit, the others only after these."""
    left = list(widths)
    while sum(left) > max(available, len(left)):
        softest = [i for i, soft in enumerate(may_shrink) if soft and left[i] > 1]
        widest = max(softest or range(len(left)), key=lambda i: left[i])
        left[widest] -= 1
    return left


def _filled(widths: Sequence[int], needed: Sequence[int], available: int) -> list[int]:
    """What is left goes, character by character, to the column that lacks most."""
    filled = list(widths)
    for _ in range(max(0, available - sum(filled))):
        lacking = max(range(len(filled)), key=lambda i: needed[i] - filled[i])
        if filled[lacking] >= needed[lacking]:
            break
        filled[lacking] += 1
    return filled


# Rows of a screen: a longer table is as wide as these ask for.
_JUDGED_BY = 24


def _lowered(
    widths: list[int], least: Sequence[int], needed: Sequence[int], rows: Sequence[Sequence[str]]
) -> list[int]:
    """Columns with more than their longest word give of it to those that lack, as long as it saves lines."""
    count = cache(_num_lines)

    def height(of: Sequence[int]) -> int:
        return sum(max(map(count, row, of)) for row in rows)

    while True:
        given = [
            [width + moved * ((i == b) - (i == a)) for i, width in enumerate(widths)]
            for a, b in permutations(range(len(widths)), 2)
            for moved in range(1, min(widths[a] - least[a], needed[b] - widths[b]) + 1)
        ]
        lowest = min(given, key=height, default=widths)
        if height(lowest) >= height(widths):
            return widths
        widths = lowest


def _num_lines(cell: str, width: int) -> int:
    """Of a cell none of whose words is wider."""
    num_lines, used = 0, 0
    for line in cell.split("\n"):
        num_lines, used = num_lines + 1, 0
        for word in map(len, line.split()):
            begins = used > 0 and used + 1 + word > width
            num_lines, used = num_lines + begins, word if begins or not used else used + 1 + word
    return num_lines


# Characters of a table beside its cells: both edges, and between two columns.
_EDGES, _GAP = 2, 2
_HEADING = "bold"
_STYLES: Mapping[Tone, str] = {
    Tone.BEST: "bold green",
    Tone.GOOD: "green",
    Tone.PLAIN: "",
    Tone.FAINT: "dim",
    Tone.DOUBTFUL: "yellow",
    Tone.BAD: "bold red",
}


class TableLayout:
    """The texts of a table, and the room they have on a console.

    Cells are laid out here: rich's own tables, which look the same, take a quarter of a millisecond a row.
    """

    def __init__(self, table: Table, console: Console) -> None:
        self._table = table
        self._console = console
        self._rows = [row_texts(row, table) for row in table.rows]
        names = [column.name for column in table.columns]
        self._columns = list(zip(names, *self._rows, strict=True))
        self._kept_whole = [not column.wraps for column in table.columns]
        self._available = console.width - _EDGES - _GAP * (len(names) - 1)

    def fits(self) -> bool:
        """Whether no word need be broken, and no line of a column that does not wrap."""
        return sum(least_widths(self._columns, kept_whole=self._kept_whole)) <= self._available

    def text(self) -> str:
        """Heading, rule and rows; in the colours of their tones where the console has colours."""
        styles = {style: Style.parse(style) for style in (_HEADING, *_STYLES.values())}
        lines = [Segment(line, styles[style]) for line, style in self._lines()]
        with self._console.capture() as capture:
            self._console.print(Segments(lines, new_lines=True), end="", crop=False)
        return capture.get().removesuffix("\n")

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Each line, as wide as the table, and its style."""
        widths = column_widths(self._columns, self._available, kept_whole=self._kept_whole)
        inner = sum(widths) + _GAP * (len(widths) - 1)
        edge, rule = " " * (inner + _EDGES), "-" if self._console.options.ascii_only else "─"
        yield edge, ""
        for line in self._row([column.name for column in self._table.columns], widths, from_below=True):
            yield line, _HEADING
        yield f" {rule * inner} ", ""
        for row, cells in zip(self._table.rows, self._rows, strict=True):
            for line in self._row(cells, widths):
                yield line, _STYLES[row.tone]
        if self._table.ends_blank:
            yield edge, ""

    def _row(self, cells: Sequence[str], widths: Sequence[int], *, from_below: bool = False) -> Iterator[str]:
        """The lines of one row; of a heading, the cells with fewer lines stand on the rule."""
        laid = list(map(self._laid, cells, widths, self._table.columns))
        most = max(map(len, laid))
        for i in range(-most, 0) if from_below else range(most):
            parts = [
                lines[i] if -len(lines) <= i < len(lines) else " " * width
                for lines, width in zip(laid, widths, strict=True)
            ]
            yield f" {(' ' * _GAP).join(parts)} "

    def _laid(self, cell: str, width: int, column: Column) -> Sequence[str]:
        """The lines of a cell, each as wide as its column."""
        is_right, lines = column.kind.is_right, cell.split("\n")
        if all(cell_len(line) <= width for line in lines):
            return [_aligned(line, width, is_right) for line in lines]
        # Rich aligns before it cuts: a line cut behind a blank ends in the blank, on the right too.
        side: JustifyMethod = "right" if is_right else "left"
        text = Text(cell)
        broken = text.wrap(self._console, width, justify=side, overflow="fold", no_wrap=not column.wraps)
        return [line.plain for line in broken]


def _aligned(line: str, width: int, is_right: bool) -> str:
    text = line.rstrip()
    spaces = " " * (width - cell_len(text))
    return spaces + text if is_right else text + spaces


_INDENT = "  "
# Where a value begins: its further lines do, too.
_HANGING = " " * (len(_INDENT) + NAME_WIDTH)
# Below, sentences with names and paths in them are left to the terminal.
_LEAST_WIDTH = 50
# Of a file or a pipe, unless COLUMNS says otherwise: its reader has no fewer.
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
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() else 0
        return Console(highlight=False, width=width or _NOT_A_TERMINAL)

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

    if table.narrow and screen.width < table.narrow_below:
        yield from _blocks(table.narrow, screen)
        return
    layout = TableLayout(table, screen.console)
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
    for line in draw_chart(chart, width):
        yield line if len(line) <= width else textwrap.fill(line, width, subsequent_indent=_INDENT)
