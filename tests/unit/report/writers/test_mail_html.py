"""The HTML of a mail: charts are pictures inside it, texts stay text, and nothing is loaded."""

import re

from advisor.report.document import USD, Axis, Chart, Column, Document, Row, Section, Series, Table, columns
from advisor.report.recommendation import recommendation_document
from advisor.report.writers.mail import to_mail_html
from tests.recommendations import many_options
from tests.unit.report.printed import of, table

EVIL = '<script>alert("x")</script>'


def chart(title: str) -> Chart:
    return Chart(x=Axis(USD), y=Axis(USD), series=(Series("a", ((1.0, 2.0), (2.0, 1.0))),), title=title)


def test_each_chart_is_a_picture_that_the_html_shows_once():
    html = to_mail_html(of(chart("Spend"), Section("between", ()), chart("Prices")), "Week 47")
    assert re.findall(r'<img src="cid:([^"]*)" alt="([^"]*)"', html.text) == [
        ("chart-1", "Spend"), ("chart-2", "Prices"),
    ]  # fmt: skip
    assert re.findall("<b>(.*)</b>", html.text) == ["Spend", "Prices"]
    assert [picture.cid for picture in html.pictures] == ["chart-1", "chart-2"]
    assert all(picture.png.startswith(b"\x89PNG") for picture in html.pictures)


def test_an_answer_looks_as_on_its_page_chart_and_tables():
    document = recommendation_document(many_options(6), top=5)
    html = to_mail_html(document, "s")
    assert len(html.pictures) == 1
    assert html.text.count("<table") == 2
    assert to_mail_html(document, "s") == html, "the same answer is the same mail"


def test_texts_stay_text_and_nothing_is_loaded():
    document: Document = of(Section(EVIL, (EVIL,)), *table([EVIL], [[EVIL]]).blocks, chart(f'"{EVIL}'))
    html = to_mail_html(document, EVIL).text
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 5
    assert not re.search(r"(src|href)=\"(?!cid:)", html)
    assert "<style" not in html


def test_a_column_named_as_its_table_is_named_once():
    leaks = Table(columns=(Column("Leaks"),), rows=(Row(("one",)),), caption="Leaks")
    both = Table(columns=columns("Leaks", "USD"), rows=(Row(("one", "2")),), caption="Leaks")
    assert to_mail_html(of(leaks), "s").text.count("Leaks") == 1
    assert to_mail_html(of(both), "s").text.count("Leaks") == 2


def test_a_document_without_charts_needs_no_drawing(monkeypatch):
    monkeypatch.setattr("advisor.report.writers.pictures.png", lambda _: 1 / 0)
    assert to_mail_html(of(Section("words", ())), "s").pictures == ()
