"""Schedules and their occurrences in the database: what is noted, and by whom it may be changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.errors import LockedError
from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Schedule
from advisor.store.handle import Store
from advisor.store.schedules import (
    add_schedule,
    begin_occurrence,
    change_occurrence,
    last_delivered,
    occurrences,
    remove_schedule,
    schedule_lock,
    schedules,
    settle,
    unfinished_occurrences,
)
from tests.schedules import AT, make_schedule

DUE = datetime(2026, 11, 23, 7, tzinfo=UTC)
LONG_AGO = AT - timedelta(days=400)


@pytest.fixture
def weekly(store):
    """A schedule that is kept."""
    schedule = make_schedule(command=("recommend", "t.json", "--budget", "50"), when=DeliverWhen.CHANGES)
    assert add_schedule(store, schedule)
    return schedule


def running(**changes: object) -> Occurrence:
    """The first attempt of a time of the schedule."""
    begun = Occurrence(
        schedule_id="5f", due_at=DUE, state=OccurrenceState.RUNNING, holder="ann", started_at=DUE, attempts=1
    )
    return replace(begun, **changes)


def ended(**changes: object) -> Occurrence:
    """Its end."""
    done = running(
        state=OccurrenceState.DONE,
        ended_at=DUE + timedelta(seconds=60),
        exit_code=0,
        recommended="aws/x",
        outcome="recommends aws/x",
        delivery="sent to team",
        output_sha256="ab" * 32,
        output="all of it",
    )
    return replace(done, **changes)


def begun(store: Store, schedule: Schedule, **changes: object) -> Occurrence:
    """A time of the schedule that is noted as running."""
    occurrence = running(**changes)
    assert settle(store, schedule, occurrence, (), until=occurrence.due_at, forget_before=LONG_AGO)
    return occurrence


def test_a_schedule_comes_back_as_it_was_and_a_name_is_taken_once(store, weekly):
    assert schedules(store) == (weekly,)
    assert not add_schedule(store, replace(weekly, id="other", cron="1 1 1 1 *"))
    assert schedules(store) == (weekly,)


def test_schedules_stand_by_name(store):
    for name in ("b", "a", "c"):
        add_schedule(store, make_schedule(id=name, name=name))
    assert [schedule.name for schedule in schedules(store)] == ["a", "b", "c"]


def test_what_is_removed_takes_its_occurrences_along(store, weekly):
    begun(store, weekly)
    assert remove_schedule(store, "weekly")
    assert not remove_schedule(store, "weekly")
    assert occurrences(store, weekly.id, most=9) == ()
    assert not change_occurrence(store, ended())


def test_from_beginning_to_end(store, weekly):
    occurrence = begun(store, weekly)
    assert occurrences(store, weekly.id, most=9) == unfinished_occurrences(store) == (occurrence,)
    assert change_occurrence(store, ended())
    assert occurrences(store, weekly.id, most=9) == (ended(),)
    assert unfinished_occurrences(store) == ()
    assert not change_occurrence(store, ended(exit_code=1))
    assert occurrences(store, weekly.id, most=9) == (ended(),)


def test_of_two_who_read_the_same_one_notes_it(store, weekly):
    begun(store, weekly)
    change_occurrence(store, ended())
    second = running(holder="bob", due_at=DUE + timedelta(hours=1))
    assert not settle(store, weekly, second, (), until=DUE, forget_before=LONG_AGO)
    assert occurrences(store, weekly.id, most=9) == (ended(),)


@pytest.mark.parametrize("state", [OccurrenceState.RUNNING, OccurrenceState.CLAIMED])
def test_while_one_is_not_finished_none_is_added(store, weekly, state):
    begun(store, weekly, state=state)
    (settled,) = schedules(store)
    later = running(due_at=DUE + timedelta(days=7))
    assert not settle(store, settled, later, (), until=later.due_at, forget_before=LONG_AGO)
    change_occurrence(store, ended())
    assert settle(store, settled, later, (), until=later.due_at, forget_before=LONG_AGO)


def test_a_schedule_has_one_lock(store, weekly):
    other = replace(weekly, id="7a")
    with schedule_lock(store, weekly, "ann"), schedule_lock(store, other, "bob"), pytest.raises(LockedError):
        schedule_lock(store, weekly, "bob")


def test_settled_is_settled(store, weekly):
    moments = [DUE - timedelta(days=7 * n) for n in (3, 2, 1)]
    until = DUE + timedelta(seconds=5)
    assert settle(store, weekly, None, moments, until=until, forget_before=LONG_AGO)
    (settled,) = schedules(store)
    assert settled.settled_until == until
    kept = occurrences(store, weekly.id, most=2)
    assert [(one.state, one.due_at) for one in kept] == [
        (OccurrenceState.MISSED, moments[2]), (OccurrenceState.MISSED, moments[1]),
    ]  # fmt: skip


def test_the_end_of_an_attempt_counts_until_the_next_begins(store, weekly):
    begun(store, weekly)
    again = running(holder="bob", attempts=2, started_at=DUE + timedelta(minutes=2))
    begin_occurrence(store, again)
    assert occurrences(store, weekly.id, most=9) == (again,)
    # A laptop that slept comes back: its end is not noted.
    assert not change_occurrence(store, ended())
    assert change_occurrence(store, ended(holder="bob", attempts=2))
    (done,) = occurrences(store, weekly.id, most=9)
    assert (done.holder, done.attempts, done.state) == ("bob", 2, OccurrenceState.DONE)


def test_one_that_waits_is_not_finished_and_begins_again(store, weekly):
    begun(store, weekly)
    waits = running(state=OccurrenceState.CLAIMED, expires_at=DUE + timedelta(minutes=5), outcome="not yet")
    assert change_occurrence(store, waits)
    assert unfinished_occurrences(store) == (waits,)
    begin_occurrence(store, running(attempts=2))
    (again,) = unfinished_occurrences(store)
    assert (again.state, again.attempts, again.expires_at) == (OccurrenceState.RUNNING, 2, None)


def test_unfinished_ones_stand_by_time(store, weekly):
    moments = [DUE + timedelta(minutes=minutes) for minutes in (3, 1, 2)]
    for moment in moments:
        begin_occurrence(store, running(due_at=moment))
    assert [one.due_at for one in unfinished_occurrences(store)] == sorted(moments)


def test_the_last_that_was_delivered(store, weekly):
    assert last_delivered(store, weekly.id) is None
    for days, delivery in ((0, "sent"), (1, "not sent: nothing changed"), (2, "")):
        moment = DUE + timedelta(days=days)
        begin_occurrence(store, running(due_at=moment))
        assert change_occurrence(store, ended(due_at=moment, delivery=delivery))
    last = last_delivered(store, weekly.id)
    assert last.due_at == DUE + timedelta(days=1)


def test_old_occurrences_are_forgotten_but_not_those_in_work(store, weekly):
    old = [AT - timedelta(days=days) for days in (500, 300)]
    assert settle(store, weekly, None, old, until=DUE, forget_before=LONG_AGO)
    (settled,) = schedules(store)
    assert settle(store, settled, None, (), until=DUE, forget_before=LONG_AGO)
    assert [one.due_at for one in occurrences(store, weekly.id, most=9)] == [old[1]]
