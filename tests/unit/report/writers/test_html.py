"""A document as HTML: every block shows, and no text of it is code."""

from __future__ import annotations

from advisor.report.cells import USD
from advisor.report.document import (
    BLANK,
    Axis,
    Block,
    Chart,
    Column,
    Fact,
    Lines,
    Row,
    Section,
    Series,
    Sum,
    Table,
    Tone,
)
from advisor.report.writers.html import to_html
from tests.unit.report.printed import of
from tests.unit.report.test_html import EVIL, Page

CHART = Chart(x=Axis(USD), y=Axis(USD), series=(Series(EVIL, ((1.0, 2.0),)),), title=EVIL)
BLOCKS: tuple[Block, ...] = (
    Table(
        columns=(Column(EVIL), Column("Cost", USD)), rows=(Row(((EVIL, "x"), 1.5), Tone.BEST),), caption=EVIL
    ),
    Lines((EVIL,)),
    BLANK,
    Section(EVIL, (EVIL, Fact(EVIL, EVIL, EVIL), Sum((Fact("a", "1"), Fact("total", "1"))))),
    CHART,
)


def test_every_block_shows_and_no_text_is_code() -> None:
    html = to_html(of(*BLOCKS))
    page = Page(html.replace("<br>", ""))
    assert "<script" not in html
    assert page.tags == {
        "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "ul", "li", "pre",
    }  # fmt: skip
    assert page.text.count(EVIL) == 3 + 1 + 1 + 1 + 3 + 2


def test_numbers_stand_to_the_right_in_the_words_of_their_kind() -> None:
    html = to_html(of(*BLOCKS[:1]))
    assert '<td style="text-align: right">$1.50</td>' in html
    assert '<tr style="font-weight: bold">' in html
    assert "<br>x</td>" in html


def test_blanks_and_empty_captions_leave_nothing() -> None:
    assert to_html(of(BLANK)) == ""
    assert "caption" not in to_html(of(Table(columns=(), rows=())))


def test_a_fact_has_its_note_in_brackets() -> None:
    html = to_html(of(Section("T", (Fact("rate", "$1", "a list"), Fact("plain", "x")))))
    assert "<li>rate: $1 (a list)</li>" in html
    assert "<li>plain: x</li>" in html
