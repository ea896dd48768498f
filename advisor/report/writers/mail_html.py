"""A document as the HTML of a mail: blocks without a stylesheet, and charts as pictures inside."""

from __future__ import annotations

from markupsafe import Markup

from advisor.delivery.message import Html, Picture
from advisor.report.document import Chart, Document
from advisor.report.plain import shown
from advisor.report.writers.html import BlockWriter

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
