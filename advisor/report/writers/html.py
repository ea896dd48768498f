"""Blocks of a document as HTML: alone for notebooks and mail, or as parts of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias, assert_never

from markupsafe import Markup

from advisor.report.document import Block, Chart, Document, Entry, Fact, Lines, Section, Sum, Table
from advisor.report.writers.templating import macro

_BLOCKS = "blocks.html.j2"
Piece: TypeAlias = tuple[Literal["texts", "facts", "sum"], Sequence[str | Fact]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWriter:
    """How blocks become HTML.

    Attributes:
        draw: what stands for a chart.
        inline: whether attributes say what matters, where no stylesheet does.
        heading: level of a section's heading.
    """

    draw: Callable[[Chart], Markup]
    inline: bool
    heading: int

    def html(self, blocks: Iterable[Block]) -> Markup:
        """Every block, one below the other."""
        return Markup("\n").join(filter(None, map(self._block, blocks)))

    def _block(self, block: Block) -> Markup:
        match block:
            case Table():
                written = macro(_BLOCKS, "table")(block, self.inline)
            case Lines():
                written = macro(_BLOCKS, "lines")(block)
            case Section():
                written = macro(_BLOCKS, "section")(block, list(_pieces(block.entries)), self.heading)
            case Chart():
                written = self.draw(block)
            case _:
                assert_never(block)
        return written.strip()


def to_html(document: Document) -> str:
    """Every block for a notebook."""
    return str(BlockWriter(draw=_letters, inline=True, heading=4).html(document.blocks))


def _pieces(entries: Sequence[Entry]) -> Iterator[Piece]:
    """Texts and facts that follow each other are a list each, and so is every sum."""
    for kind, alike in groupby(entries, type):
        if kind is str:
            # In a terminal a dash stands before an item of a list.
            yield "texts", [text.removeprefix("- ") for text in alike if isinstance(text, str)]
        elif kind is Fact:
            yield "facts", [fact for fact in alike if isinstance(fact, Fact)]
        else:
            yield from (("sum", one.facts) for one in alike if isinstance(one, Sum))


def _letters(chart: Chart) -> Markup:
    """A drawing of letters, as in a terminal."""
    from advisor.report.writers.plot import draw_chart

    return Markup("<pre>{}</pre>").format("\n".join(draw_chart(chart, 100)))
