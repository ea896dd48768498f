"""One table in a terminal; imported where one is drawn, since rich is slow to import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from advisor.report.document import Column, Table, Tone
from advisor.report.writers.column_widths import column_widths, least_widths
from advisor.report.writers.words import row_texts

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

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


class Layout:
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
