"""A document as blocks of Slack's Block Kit: plain text, and tables in the letters of a terminal.

Plain text, since nothing in it is read as a mention, a link or an emoji. What an incoming webhook cannot
show, such as a chart, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from advisor.report.document import Block, Chart, Document, Lines, Table
from advisor.report.plain import shown
from advisor.report.writers.terminal import Screen, to_terminal

MOST_BLOCKS = 50
MOST_LETTERS = 3_000
MOST_OF_A_HEADER = 150
"""Slack's own limits: docs.slack.dev/reference/block-kit/blocks."""
_WIDTH, _UNFOLDED = 76, 100_000
_FENCE = "```"
_LEFT_OUT = "The rest is left out: Slack takes 50 blocks of a message."

SlackBlock: TypeAlias = Mapping[str, object]


def to_slack(document: Document, subject: str) -> tuple[SlackBlock, ...]:
    """The subject as a header, then every block that Slack can show."""
    header = {"type": "header", "text": _plain(_cut(shown(subject), MOST_OF_A_HEADER))}
    # Lines of a letter are what a terminal has in place of captions.
    shown_blocks = [b for b in document.blocks if not (document.is_letter and isinstance(b, Lines))]
    blocks = [header, *(part for block in shown_blocks for part in _parts(block))]
    if len(blocks) > MOST_BLOCKS:
        blocks = [*blocks[: MOST_BLOCKS - 1], _section(_plain(_LEFT_OUT))]
    return tuple(blocks)


def _parts(block: Block) -> Iterator[SlackBlock]:
    match block:
        case Chart():
            return
        case Table():
            if block.caption:
                yield _section(_plain(_cut(shown(block.caption), MOST_LETTERS)))
            lines = map(_unfenced, _lines(replace(block, caption=""), _WIDTH))
            for piece in _pieces(lines, MOST_LETTERS - 2 * len(_FENCE) - 2):
                fenced = {"type": "mrkdwn", "text": f"{_FENCE}\n{piece}\n{_FENCE}", "verbatim": True}
                yield _section(fenced)
        case _:
            # Slack folds lines itself.
            for piece in _pieces(_lines(block, _UNFOLDED), MOST_LETTERS):
                if piece.strip():
                    yield _section(_plain(piece))


def _lines(block: Block, width: int) -> list[str]:
    return to_terminal(Document(facts={}, blocks=(block,)), Screen(width)).strip("\n").splitlines()


def _section(text: SlackBlock) -> SlackBlock:
    return {"type": "section", "text": text}


def _plain(text: str) -> SlackBlock:
    return {"type": "plain_text", "text": text, "emoji": False}


def _unfenced(line: str) -> str:
    """A line within a fence: it neither ends the fence nor calls anybody."""
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("`", "'").rstrip()


def _pieces(lines: Iterable[str], most: int) -> Iterator[str]:
    """Lines joined to texts of at most so many characters."""
    piece = ""
    for line in (_cut(line, most) for line in lines):
        if piece and len(piece) + 1 + len(line) > most:
            yield piece
            piece = line
        else:
            piece = f"{piece}\n{line}" if piece else line
    if piece:
        yield piece


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
