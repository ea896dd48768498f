"""Schedules as documents: times on their own clock and in UTC, what happened, what is not known."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState
from advisor.report.deliveries import (
    NO_SCHEDULES,
    added_document,
    output_document,
    ran_document,
    schedule_document,
    schedules_document,
)
from advisor.report.printing import Format, text_of
from advisor.report.writers.terminal import Screen, to_terminal
from advisor.service.schedule.managing import Planned
from tests.schedules import make_schedule

DUE = datetime(2026, 11, 23, 7, tzinfo=UTC)
DONE = Occurrence(
    schedule_id="5f",
    due_at=DUE,
    state=OccurrenceState.DONE,
    holder="process 7 on vm",
    started_at=DUE + timedelta(seconds=1),
    ended_at=DUE + timedelta(seconds=91),
    attempts=1,
    exit_code=0,
    recommended="aws/x",
    outcome="recommends aws/x",
    delivery="sent to team",
    output_sha256="ab" * 32,
    output="first line\n\x1b[2Jsecond line",
)
MISSED = Occurrence(schedule_id="5f", due_at=DUE - timedelta(days=7), state=OccurrenceState.MISSED)
PLANNED = Planned(
    schedule=make_schedule(channel="team", when=DeliverWhen.CHANGES),
    next_at=DUE + timedelta(days=7),
    past=(DONE, MISSED),
)


def wide(document) -> str:
    return " ".join(to_terminal(document, Screen(160)).split())


def test_the_list_has_both_clocks_and_the_last_end():
    text = wide(schedules_document([PLANNED]))
    assert "Mon 2026-11-30 08:00 CET 2026-11-30 07:00 UTC" in text
    assert "done Mon 2026-11-23 08:00 CET: recommends aws/x" in text
    (row,) = json.loads(text_of(schedules_document([PLANNED]), Format.JSON))["schedules"]
    assert (row["next_at"], row["next_at_local"]) == (
        "2026-11-30T07:00:00+00:00",
        "2026-11-30T08:00:00+01:00",
    )
    assert (row["when"], row["last"]["state"]) == ("changes", "done")
    assert wide(schedules_document([])) == NO_SCHEDULES


def test_what_is_not_known_is_a_dash_and_never_zero():
    document = schedule_document(replace(PLANNED, past=(MISSED,), next_at=None))
    text = wide(document)
    assert "Next never never" in text
    assert "Mon 2026-11-16 08:00 CET missed 0 - - -" in text
    facts = json.loads(text_of(document, Format.JSON))
    assert facts["schedule"]["next_at"] is None
    (missed,) = facts["occurrences"]
    assert missed["exit_code"] is missed["started_at"] is missed["output_sha256"] is None


def test_one_schedule_shows_its_past_and_what_it_wrote_made_harmless():
    text = wide(schedule_document(PLANNED))
    assert "Output goes to team, changes" in text
    assert "Mon 2026-11-23 08:00 CET done 1 2 min recommends aws/x sent to team" in text
    assert "What it wrote, Mon 2026-11-23 08:00 CET: first line \\x1b[2Jsecond line" in text


def test_what_was_added_says_where_and_when():
    words = make_schedule(command=("recommend", "my script.py"))
    text = wide(added_document(Planned(schedule=words, next_at=DUE)))
    assert text.startswith("Added weekly: advisor recommend 'my script.py' in /home/ann/train, next Mon")


def test_what_is_sent_and_what_ran_now_say_which_schedule_and_how_it_ended():
    document = output_document(PLANNED.schedule, DONE)
    assert "advisor prices refresh: recommends aws/x" in wide(document)
    assert "Schedule weekly, due Mon 2026-11-23 08:00 CET" in wide(document)
    assert json.loads(text_of(document, Format.JSON))["occurrence"]["exit_code"] == 0
    assert wide(ran_document("weekly", DONE)).endswith("weekly: done, recommends aws/x; sent to team")


def test_every_format_shows_every_document():
    documents = (
        schedules_document([PLANNED]), schedule_document(PLANNED), added_document(PLANNED),
        ran_document("weekly", DONE), output_document(PLANNED.schedule, DONE), schedules_document([]),
    )  # fmt: skip
    for document in documents:
        for output in Format:
            assert "\x1b[2J" not in text_of(document, output)
