"""One table in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.report.document import Table, Tone
from advisor.report.writers.column_widths import column_widths, least_widths
from advisor.report.writers.words import row_texts

if TYPE_CHECKING:
    from rich.console import Console

# Characters of a table beside its cells: both edges, and between two columns.
_EDGES, _GAP = 2, 2
_STYLES: Mapping[Tone, str] = {
    Tone.BEST: "bold green",
    Tone.GOOD: "green",
    Tone.PLAIN: "",
    Tone.FAINT: "dim",
    Tone.DOUBTFUL: "yellow",
    Tone.BAD: "bold red",
}


class Layout:
    """The texts of a table, and the room they have on a console."""

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
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        widths = column_widths(self._columns, self._available, kept_whole=self._kept_whole)
        drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for column, width in zip(self._table.columns, widths, strict=True):
            drawn.add_column(
                column.name,
                justify="right" if column.kind.is_right else "left",
                overflow="fold",
                no_wrap=not column.wraps,
                width=width,
            )
        for row, cells in zip(self._table.rows, self._rows, strict=True):
            # As Text: rich would read colours, links and emoji into a str.
            drawn.add_row(*map(Text, cells), style=_STYLES[row.tone])
        with self._console.capture() as capture:
            self._console.print(drawn)
        return capture.get().removesuffix("\n")
