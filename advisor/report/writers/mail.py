"""A document as a message: HTML for mail, blocks for Slack, and files."""

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

from markupsafe import Markup

from advisor.delivery.channel import File, Html, Message, Picture
from advisor.report.document import Block, Chart, Document, Lines, Table
from advisor.report.plain import shown
from advisor.report.printing import Format, text_of
from advisor.report.writers.html import BlockWriter
from advisor.report.writers.terminal import Screen, to_terminal

_PICTURE = Markup(
    '<p style="padding: 4px 8px"><b>{1}</b><br>'
    '<img src="cid:{0}" alt="{1}" width="640" style="max-width: 100%"></p>'
)
_NOT_DRAWN = Markup('<p style="padding: 4px 8px"><b>{}</b><br>{}</p>')
_PAGE = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{}</title></head>\n'
    '<body style="font-family: sans-serif">\n{}\n</body></html>'
)


def to_mail_html(document: Document, subject: str) -> Html:
    """What a page shows, in the little HTML that mail programs know."""
    pictures: list[Picture] = []

    def draw(chart: Chart) -> Markup:
        from advisor.report.writers.pictures import NOT_INSTALLED, TOO_LITTLE_MEMORY, can_draw, png

        drawn = png(chart) if can_draw() else None
        if drawn is None:
            return _NOT_DRAWN.format(shown(chart.title), TOO_LITTLE_MEMORY if can_draw() else NOT_INSTALLED)
        picture = Picture(cid=f"chart-{len(pictures) + 1}", png=drawn)
        pictures.append(picture)
        return _PICTURE.format(picture.cid, shown(chart.title))

    blocks = document.blocks if document.page is None else document.page()
    body = BlockWriter(draw=draw, inline=True, heading=2).html(blocks)
    return Html(text=str(_PAGE.format(shown(subject), body)), pictures=tuple(pictures))


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
    return html.escape(line, quote=False).replace("`", "'").rstrip()


def _pieces(lines: Iterable[str], most: int) -> Iterator[str]:
    """Lines joined to texts of at most so many characters."""
    piece = ""
    for line in (_cut(line, most) for line in lines):
        if piece and len(piece) + 1 + len(line) > most:
            yield piece
            piece = ""
        piece = f"{piece}\n{line}" if piece else line
    if piece:
        yield piece


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


# Characters of a line of plain text that mail programs do not fold.
_MAIL_WIDTH = 78


def message_of(document: Document, subject: str) -> Message:
    """The message that says what a document says."""
    return Message(
        subject=shown(subject),
        text=to_terminal(document, Screen(_MAIL_WIDTH)),
        html=cache(partial(to_mail_html, document, subject)),
        files=(
            File(suffix=".html", media_type="text/html", make=cache(partial(text_of, document, Format.HTML))),
            File(suffix=".md", media_type="text/markdown", make=partial(text_of, document, Format.MARKDOWN)),
            File(suffix=".csv", media_type="text/csv", make=partial(text_of, document, Format.CSV)),
        ),
        blocks=to_slack(document, subject),
        facts=json.loads(text_of(document, Format.JSON)),
        of_moment=document.of_moment,
    )
