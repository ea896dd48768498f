"""A document as HTML: every block shows, and no text of it is code."""

import math
from datetime import date

import pytest

from advisor.core.values import Interval, Quantiles
from advisor.report import document as doc
from advisor.report.writers.html import sort_value, to_html
from tests.unit.report.printed import of
from tests.unit.report.test_html import EVIL, Page

CHART = doc.Chart(
    x=doc.Axis(doc.USD), y=doc.Axis(doc.USD), series=(doc.Series(EVIL, ((1.0, 2.0),)),), title=EVIL
)
BLOCKS: tuple[doc.Block, ...] = (
    doc.Table(
        columns=(doc.Column(EVIL), doc.Column("Cost", doc.USD)),
        rows=(doc.Row(((EVIL, "x"), 1.5), doc.Tone.BEST),),
        caption=EVIL,
    ),
    doc.Lines((EVIL,)),
    doc.BLANK,
    doc.Section(
        EVIL, (EVIL, doc.Fact(EVIL, EVIL, EVIL), doc.Sum((doc.Fact("a", "1"), doc.Fact("total", "1"))))
    ),
    CHART,
)


def test_every_block_shows_and_no_text_is_code():
    html = to_html(of(*BLOCKS))
    page = Page(html.replace("<br>", ""))
    assert "<script" not in html
    assert page.tags == {
        "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "section", "h4", "ul", "li",
        "dl", "div", "dt", "dd", "small", "pre",
    }  # fmt: skip
    assert page.text.count(EVIL) == 3 + 1 + 1 + 1 + 3 + 2


def test_numbers_stand_to_the_right_in_the_words_of_their_kind():
    html = to_html(of(*BLOCKS[:1]))
    assert (
        '<td style="text-align: right; vertical-align: top; padding: 2px 8px" data-value="1.5">$1.50</td>'
        in html
    )
    assert '<tr style="font-weight: bold">' in html
    assert "<br>x</td>" in html


def test_blanks_and_empty_captions_leave_nothing():
    assert to_html(of(doc.BLANK)) == ""
    assert "caption" not in to_html(of(doc.Table(columns=(), rows=())))


def test_texts_facts_and_sums_are_lists_of_their_own():
    sums = doc.Sum((doc.Fact("a", "1"), doc.Fact("total", "1")))
    html = to_html(
        of(doc.Section("T", ("- one", "two", doc.Fact("rate", "$1", "a list"), doc.Fact("plain", "x"), sums)))
    )
    assert "<ul><li>one</li><li>two</li></ul>" in html
    assert (
        "<div><dt>rate</dt> <dd>$1 <small>a list</small></dd></div><div><dt>plain</dt> <dd>x</dd></div>"
        in html
    )
    assert '<dl class="sum"><div><dt>a</dt> <dd>1</dd></div>' in html


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (1.5, "1.5"),
        (3, "3"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, ""),
        (None, ""),
        ("12 GB", None),
        (date(2026, 11, 21), "2026-11-21"),
        (Quantiles(p50=2.0, p90=9.0), "2.0"),
        (Interval(p10=1.0, p50=2.0, p90=9.0), "2.0"),
        (doc.Worded("~3.67, 111 d", 3.67), "3.67"),
        (doc.Worded("", None), ""),
        ((7, "below"), "7"),
        ((), None),
    ],
)
def test_a_column_is_sorted_by_values_not_by_their_words(cell, value):
    assert sort_value(cell) == value
