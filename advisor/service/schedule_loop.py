"""The service that runs schedules: looks what is due, claims it, and runs a few commands at once."""

from __future__ import annotations

from concurrent.futures import Executor
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, InputError
from advisor.core.redaction import error_in_words
from advisor.core.units import format_duration
from advisor.core.values import Schedule
from advisor.schedule.times import Due, due, next_after
from advisor.service.occurrence_run import run_claimed
from advisor.service.schedule_world import Surroundings, utc_text

if TYPE_CHECKING:
    from advisor.store.occurrences import Claim

MOST_AT_ONCE = 4
GRACE_S = 60.0
"""How long a service that is asked to end lets its commands go on."""
LONGEST_WAIT_S = 60.0


class ScheduleService:
    """Runs what is due in a store, as long as nobody asks it to end.

    Args:
        world: database, clock, commands, channels.
        pool: runs a few commands at once.
    """

    def __init__(self, world: Surroundings, pool: Executor) -> None:
        self._world = world
        self._pool = pool
        self._running = 0
        self._lock = Lock()
        self._stopped_at: datetime | None = None

    def run(self) -> None:
        """Until it is asked to end; what runs then is given ``GRACE_S``.

        Raises:
            StoreError: the database cannot be read or written when it begins. Later it is tried again.
        """
        next_at = self.begin_due()
        while not self._world.is_stopping():
            self._world.wait(self._pause_s(next_at))
            if not self._world.is_stopping():
                next_at = self._begin_due_or_say()
        if self._running:
            self._world.log(f"ending: {self._running} running, {format_duration(GRACE_S)} to finish")
        self._stopped_at = self._world.now()

    def begin_due(self) -> datetime | None:
        """Begin what is due or was left by others, and say when the next one is; None for never.

        Raises:
            StoreError: the database cannot be read or written.
        """
        from advisor.store.occurrences import take_over
        from advisor.store.schedules import schedules

        known = schedules(self._world.store)
        while self._has_room() and (claim := take_over(self._world.store, known, self._world.claimant())):
            self._world.log(f"{claim.schedule.name}: taken over, it was due at {utc_text(claim.due_at)}")
            self._submit(claim)
        times = [self._begin(schedule) for schedule in known]
        return min((at for at in times if at is not None), default=None)

    def _begin_due_or_say(self) -> datetime | None:
        try:
            return self.begin_due()
        except AdvisorError as error:
            self._world.log(f"{error} Trying again within a minute.")
            return None

    def _pause_s(self, next_at: datetime | None) -> float:
        if next_at is None:
            return LONGEST_WAIT_S
        return min(max((next_at - self._world.now()).total_seconds(), 0.0), LONGEST_WAIT_S)

    def _begin(self, schedule: Schedule) -> datetime | None:
        """Begin it if it is due, and say when it is due next."""
        try:
            now_due = due(schedule, self._world.now(), catch_up_s=self._world.limits.catch_up_s)
            if self._has_room() and (now_due.run_at is not None or now_due.missed):
                self._settle(schedule, now_due)
            return next_after(schedule, self._world.now())
        except InputError as error:
            # Such as a time zone that this machine does not know: the other schedules go on.
            self._world.log(f"{schedule.name}: {error}")
            return None

    def _settle(self, schedule: Schedule, now_due: Due) -> None:
        from advisor.store.occurrences import Claim, settle

        claim = None if now_due.run_at is None else Claim(schedule=schedule, due_at=now_due.run_at)
        by = self._world.claimant()
        forget_before = by.now - timedelta(seconds=self._world.limits.remember_s)
        if not settle(self._world.store, schedule, claim, now_due.missed, by, forget_before=forget_before):
            return
        if now_due.missed:
            self._world.log(_missed_in_words(schedule, now_due))
        if claim is not None:
            self._submit(claim)

    def _has_room(self) -> bool:
        return self._running < MOST_AT_ONCE

    def _submit(self, claim: Claim) -> None:
        with self._lock:
            self._running += 1
        self._pool.submit(self._carry_out, claim)

    def _carry_out(self, claim: Claim) -> None:
        try:
            run_claimed(claim, self._world, is_cut_short=self._is_cut_short)
        except Exception as error:  # noqa: BLE001 - one schedule's trouble must not end the service
            self._world.log(f"{claim.schedule.name}: {error_in_words(error)}. Its claim will run out.")
        finally:
            with self._lock:
                self._running -= 1

    def _is_cut_short(self) -> bool:
        if self._world.is_hurried():
            return True
        stopped_at = self._stopped_at
        return stopped_at is not None and (self._world.now() - stopped_at).total_seconds() > GRACE_S


def _missed_in_words(schedule: Schedule, now_due: Due) -> str:
    number = f"{'' if now_due.are_all else 'more than '}{len(now_due.missed)}"
    caught_up = "" if now_due.run_at is None else f"; the latest one, of {utc_text(now_due.run_at)}, runs now"
    return f"{schedule.name}: missed {number} since {utc_text(now_due.missed[0])}{caught_up}"
