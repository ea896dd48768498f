"""What went where, in words and for programs; each outcome says what to do."""

import csv
import io
import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from advisor.delivery.posting import Delivery, Outcome
from advisor.report.deliveries import channels_document, deliveries_document, failures_in_words
from advisor.report.document import Section
from advisor.report.plain import print_lines, print_message, print_text
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import recommendation_document, subject_of
from advisor.report.writers.mail import message_of
from advisor.service.delivering import ChannelState
from advisor.store.outbox import Posted, State
from tests.recommendations import many_options
from tests.unit.report.printed import json_of, of, on_screen, table

NOT_REPEATED = (
    "it is not repeated. Look for it, and send it with another ADVISOR_DELIVERY_KEY if it is missing"
)
AT = datetime(2026, 11, 23, 8, 1, tzinfo=UTC)


def delivery(outcome: Outcome, **changes: Any) -> Delivery:
    values = {"channel": "mail", "target": "ann@example.org", "at": AT, "attempts": 1}
    return Delivery(**(values | {"outcome": outcome} | changes))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (delivery(Outcome.FAILED, error="no such user"), "mail: not sent: no such user"),
        (delivery(Outcome.SENT, error="refused: bob"), "mail: sent: refused: bob"),
        (delivery(Outcome.SENT_BEFORE, error="refused: bob"), "mail: sent before: refused: bob"),
        (
            delivery(Outcome.PERHAPS),
            f"mail: perhaps sent: a process ended in the middle of sending it; {NOT_REPEATED}",
        ),
        (
            delivery(Outcome.BUSY),
            "mail: being sent: another process sends it since 2026-11-23 08:01 UTC: try again later",
        ),
    ],
)
def test_what_did_not_surely_arrive_is_a_line(one, words):
    assert failures_in_words([delivery(Outcome.SENT), delivery(Outcome.SENT_BEFORE), one]) == (words,)


def test_every_outcome_has_a_row_and_a_record():
    document = deliveries_document([delivery(outcome) for outcome in Outcome])
    shown = on_screen(document, 200)
    for words in ("sent ", "sent before", "perhaps sent", "being sent", "not sent", "not sent again"):
        assert words in shown
    records = json_of(document)["deliveries"]
    assert [record["outcome"] for record in records] == list(Outcome)
    assert records[0] == {
        "channel": "mail", "target": "ann@example.org", "outcome": "sent", "at": AT.isoformat(),
        "attempts": 1, "is_resumed": False, "error": None,
    }  # fmt: skip


def test_a_send_that_was_taken_up_again_says_so():
    document = deliveries_document([delivery(Outcome.SENT, is_resumed=True)])
    assert "again, since a process ended in the middle of sending it" in on_screen(document, 300)


def test_channels_with_their_secrets_and_last_delivery():
    last = Posted(
        key="k", channel="mail", content_sha256="0", state=State.FAILED, attempts=2, begun_at=AT,
        changed_at=AT, error="no such user",
    )  # fmt: skip
    state = ChannelState(
        name="mail",
        kind="smtp",
        target="ann@example.org",
        settings=(("host", "mail.example.org"),),
        secrets=(("env:P", None), ("file:/x", "chmod 600 /x")),
        last=last,
    )
    shown = on_screen(channels_document([state]), 200)
    failure = "failed, 2026-11-23 08:01 UTC: no such user"
    for words in ("mail (smtp)", "env:P", "can be read", "chmod 600 /x", failure):
        assert words in shown
    (record,) = json_of(channels_document([state]))["channels"]
    assert record["secrets"] == [
        {"name": "env:P", "problem": None}, {"name": "file:/x", "problem": "chmod 600 /x"},
    ]  # fmt: skip
    assert record["last"]["state"] == "failed"


def test_without_channels_the_page_is_named():
    assert "docs/delivery.md" in on_screen(channels_document([]), 100)


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


@pytest.fixture
def unread():
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_who_left_ends_nothing(unread, name, monkeypatch):
    with pytest.raises(BrokenPipeError):
        os.write(unread.fileno(), b"nobody hears this")
    monkeypatch.setattr(f"sys.{name}", unread)
    print_text("a table\n" * 100_000)
    print_lines("Recorded as 1.", "Wrote it.")
    print_message("warning", "and what was said beside it")
    # As Python does at exit, where an error would be a second exit code.
    unread.flush()


def test_a_full_disk_is_an_error(monkeypatch):
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(OSError, match="No space left"):
            print_text("a table")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
