"""A document in every form that a channel takes."""

import csv
import io
import json
from dataclasses import replace

from advisor.report.document import Section
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import recommendation_document, subject_of
from advisor.report.writers.mail import message_of
from tests.recommendations import many_options
from tests.unit.report.printed import of, table


def test_every_form_says_the_same():
    recommendation = many_options(20)
    document = recommendation_document(recommendation, top=5)
    message = message_of(document, subject_of(recommendation))
    assert message.file(".json") is not None
    facts = json.loads(message.file(".json").payload)
    assert facts == json.loads(text_of(document, Format.JSON))
    rows = list(csv.reader(io.StringIO(message.file(".csv").payload.decode())))
    assert len(rows) == 21
    assert message.file(".md").payload.decode().rstrip("\n") == text_of(document, Format.MARKDOWN)
    assert message.file(".txt").payload.decode() == f"{message.text}\n"
    assert message.file(".pdf") is None


def test_plain_text_has_no_colours_and_no_long_lines(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    document = of(Section("words " * 40, ()), *table(["a" * 30, "b" * 30], [["x" * 50, "y" * 50]]).blocks)
    text = message_of(document, "s").text
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.splitlines())) <= 78


def test_a_subject_is_one_line_of_what_can_be_seen():
    assert message_of(of(), "a\r\nBcc: eve\x1b[2J\u202e").subject == r"a\r\nBcc: eve\x1b[2J\u202e"


def test_the_subject_says_what_to_take_or_that_there_is_nothing():
    assert subject_of(many_options(3)).startswith("train.py: ")
    nothing = replace(many_options(3), recommended=None)
    assert subject_of(nothing) == "train.py: nothing is feasible"
