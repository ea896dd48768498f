"""What went where, in words and for programs; each outcome says what to do."""

from datetime import UTC, datetime
from typing import Any

import pytest

from advisor.delivery.posting import Delivery, Outcome
from advisor.report.deliveries import channels_document, deliveries_document, failures_in_words
from advisor.service.delivering import ChannelState
from advisor.store.outbox import Posted, State
from tests.unit.report.printed import json_of, on_screen

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
