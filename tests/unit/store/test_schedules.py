"""Schedules and their occurrences in the database: one claims, a lost claim changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Schedule
from advisor.store.handle import Store
from advisor.store.occurrences import (
    Claim,
    Claimant,
    begin,
    claim_now,
    end,
    give_back,
    last_delivered,
    occurrence_at,
    occurrences,
    renew,
    settle,
    take_over,
)
from advisor.store.schedules import add_schedule, remove_schedule, schedules
from tests.schedules import AT, make_schedule

DUE = datetime(2026, 11, 23, 7, tzinfo=UTC)
LONG_AGO = AT - timedelta(days=400)


@pytest.fixture
def weekly(store: Store) -> Schedule:
    """A schedule that is kept."""
    schedule = make_schedule(command=("recommend", "t.json", "--budget", "50"), when=DeliverWhen.CHANGES)
    assert add_schedule(store, schedule)
    return schedule


def at(seconds: float, name: str = "ann") -> Claimant:
    """Somebody who claims for two minutes, so long after it is due."""
    return Claimant(name=name, now=DUE + timedelta(seconds=seconds), for_s=120)


def claimed(store: Store, schedule: Schedule, by: Claimant | None = None, **changes: object) -> Claim:
    claim = Claim(schedule=schedule, due_at=DUE)
    assert settle(store, schedule, claim, (), by or at(0), forget_before=LONG_AGO)
    return claim


def ended(**changes: object) -> Occurrence:
    done = Occurrence(
        schedule_id="5f",
        due_at=DUE,
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


def test_a_schedule_comes_back_as_it_was(store: Store, weekly: Schedule) -> None:
    assert schedules(store) == (weekly,)


def test_a_name_is_taken_once(store: Store, weekly: Schedule) -> None:
    assert not add_schedule(store, replace(weekly, id="other", cron="1 1 1 1 *"))
    assert schedules(store) == (weekly,)


def test_schedules_stand_by_name(store: Store) -> None:
    for name in ("b", "a", "c"):
        add_schedule(store, make_schedule(id=name, name=name))
    assert [schedule.name for schedule in schedules(store)] == ["a", "b", "c"]


def test_what_is_removed_takes_its_occurrences_along(store: Store, weekly: Schedule) -> None:
    claim = claimed(store, weekly)
    assert remove_schedule(store, "weekly")
    assert not remove_schedule(store, "weekly")
    assert occurrences(store, weekly.id, most=9) == ()
    assert not end(store, claim, ended())


def test_from_claim_to_end(store: Store, weekly: Schedule) -> None:
    claim = claimed(store, weekly)
    (as_claimed,) = occurrences(store, weekly.id, most=9)
    assert (as_claimed.state, as_claimed.holder, as_claimed.attempts) == (OccurrenceState.CLAIMED, "ann", 0)
    assert begin(store, claim, at(1))
    running = occurrence_at(store, weekly.id, DUE)
    assert running is not None
    assert (running.state, running.attempts) == (OccurrenceState.RUNNING, 1)
    assert running.expires_at == DUE + timedelta(seconds=121)
    assert end(store, claim, ended())
    done = occurrence_at(store, weekly.id, DUE)
    expected = ended(holder="ann", attempts=1, started_at=DUE + timedelta(seconds=1))
    assert done == expected


def test_of_two_who_read_the_same_one_claims(store: Store, weekly: Schedule) -> None:
    claimed(store, weekly)
    second = Claim(schedule=weekly, due_at=DUE)
    assert not settle(store, weekly, second, (), at(0, "bob"), forget_before=LONG_AGO)
    assert not begin(store, second, at(1, "bob"))
    (one,) = occurrences(store, weekly.id, most=9)
    assert one.holder == "ann"


def test_occurrences_of_one_schedule_never_overlap(store: Store, weekly: Schedule) -> None:
    claim = claimed(store, weekly)
    (settled,) = schedules(store)
    later = Claim(schedule=settled, due_at=DUE + timedelta(days=7))
    assert not settle(store, settled, later, (), at(1e6), forget_before=LONG_AGO)
    assert not claim_now(store, Claim(schedule=settled, due_at=DUE + timedelta(hours=1)), at(1e6))
    end(store, claim, ended())
    assert settle(store, settled, later, (), at(1e6), forget_before=LONG_AGO)


def test_settled_is_settled(store: Store, weekly: Schedule) -> None:
    moments = [DUE - timedelta(days=7 * n) for n in (3, 2, 1)]
    assert settle(store, weekly, None, moments, at(5), forget_before=LONG_AGO)
    (settled,) = schedules(store)
    assert settled.settled_until == DUE + timedelta(seconds=5)
    kept = occurrences(store, weekly.id, most=2)
    assert [(one.state, one.due_at) for one in kept] == [
        (OccurrenceState.MISSED, moments[2]), (OccurrenceState.MISSED, moments[1]),
    ]  # fmt: skip


def test_a_claim_that_ran_out_is_taken_over_once(store: Store, weekly: Schedule) -> None:
    claim = claimed(store, weekly)
    begin(store, claim, at(1))
    assert take_over(store, [weekly], at(120, "bob")) is None
    over = take_over(store, [weekly], at(121, "bob"))
    assert over is not None
    assert (over.due_at, over.attempts) == (DUE, 1)
    assert take_over(store, [weekly], at(122, "cleo")) is None
    # Whoever slept comes back: nothing of it counts.
    assert not renew(store, claim, at(123))
    assert not begin(store, claim, at(123))
    assert not give_back(store, claim, DUE)
    assert not end(store, claim, ended())
    assert begin(store, over, at(123, "bob"))
    assert end(store, over, ended())
    done = occurrence_at(store, weekly.id, DUE)
    assert done is not None
    assert (done.holder, done.attempts) == ("bob", 2)


def test_a_renewed_claim_lasts(store: Store, weekly: Schedule) -> None:
    claim = claimed(store, weekly)
    assert renew(store, claim, at(100))
    assert take_over(store, [weekly], at(219, "bob")) is None
    assert give_back(store, claim, DUE + timedelta(seconds=150))
    assert take_over(store, [weekly], at(150, "bob")) is not None


def test_who_knows_no_schedule_takes_nothing_over(store: Store, weekly: Schedule) -> None:
    claimed(store, weekly)
    assert take_over(store, [], at(1e6)) is None


def test_what_ended_cannot_be_taken_over_or_ended_again(store: Store, weekly: Schedule) -> None:
    claim = claimed(store, weekly)
    begin(store, claim, at(1))
    end(store, claim, ended())
    assert not end(store, claim, ended(exit_code=1))
    assert take_over(store, [weekly], at(1e9)) is None


def test_the_last_that_was_delivered(store: Store, weekly: Schedule) -> None:
    assert last_delivered(store, weekly.id) is None
    for days, delivery in ((0, "sent"), (1, "not sent: nothing changed"), (2, "")):
        claim = Claim(schedule=weekly, due_at=DUE + timedelta(days=days))
        assert claim_now(store, claim, at(0))
        end(store, claim, ended(delivery=delivery))
    last = last_delivered(store, weekly.id)
    assert last is not None
    assert last.due_at == DUE + timedelta(days=1)


def test_old_occurrences_are_forgotten_but_not_those_in_work(store: Store, weekly: Schedule) -> None:
    old = [AT - timedelta(days=days) for days in (500, 300)]
    assert settle(store, weekly, None, old, at(0), forget_before=LONG_AGO)
    (settled,) = schedules(store)
    assert settle(store, settled, None, (), at(1), forget_before=LONG_AGO)
    assert [one.due_at for one in occurrences(store, weekly.id, most=9)] == [old[1]]
