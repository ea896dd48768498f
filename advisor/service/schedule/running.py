"""The service that runs schedules: finds what is due, runs a few commands at once, and delivers.

A schedule is locked while one of its times runs, so that services on several machines share the work. What is
noted as running while its schedule's lock is free was interrupted: it runs again under the same key.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Lock as ThreadLock
from typing import ParamSpec, TypeVar

from advisor.config.settings import ScheduleSettings, StoreSettings
from advisor.core.errors import AdvisorError, DeliveryError, InputError, LockedError, ThresholdExceededError
from advisor.core.plugins import error_in_words
from advisor.core.units import DAY_S, MINUTE_S, format_duration
from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Schedule
from advisor.schedule.recurrence import Due, due, next_after
from advisor.schedule.schedulable import schedulable
from advisor.service.prices.live import now
from advisor.service.schedule.child_commands import Command, Ending, Ran, run_command
from advisor.service.schedule.managing import planned_schedule
from advisor.store import schedules as kept
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.locks import Lock

MOST_AT_ONCE = 4
MOST_ATTEMPTS = 5
"""How often a command is started whose service dies, or whose output does not arrive."""
GRACE_S = 60.0
"""How long a service that is asked to end lets its commands go on."""
LONGEST_WAIT_S = 60.0
_POSTPONED_S = 5 * MINUTE_S
# How often it is checked that the lock is still held.
_CHECK = timedelta(seconds=20)
_LOST = "its end is not noted: the schedule was removed, or another service has run it again"
# Exit codes of an answer: nothing feasible is one, wrong words are none.
_ANSWERS = (0, 3, 4, 5)
_MEANINGS = {0: "exit code 0", 4: "exit code 4: nothing feasible", 3: "exit code 3: the policy removes all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What a command wrote, on its way to a channel."""

    channel: str
    key: str
    """A channel gets each key once."""
    schedule: Schedule
    ended: Occurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a service works with."""

    store: Store
    """The database that services share."""
    catch_up_s: float
    """How late the latest occurrence may still run."""
    timeout_s: float
    """Of one command."""
    remember_s: float
    """How long occurrences are kept."""
    name: str
    """Of this process, for people to read."""
    now: Callable[[], datetime]
    """The time, with a time zone."""
    wait: Callable[[float], None]
    """Sleeps for so many seconds at most; returns early when there is something to do."""
    is_stopping: Callable[[], bool]
    """Whether the service was asked to end."""
    is_hurried: Callable[[], bool]
    """Whether running commands may not be finished, either."""
    run: Callable[[Command, Callable[[], bool]], Ran]
    """Runs a command; asks its second argument now and then whether it may go on."""
    deliver: Callable[[Outgoing], str]
    """Sends output and returns a few words about it. Raises ``DeliveryError`` where it cannot now, and
    another ``AdvisorError`` where it never can."""
    log: Callable[[str], None]
    """Takes a line of what happens."""


class ScheduleService:
    """Runs what is due in a database until it is asked to end."""

    def __init__(self, world: Surroundings, pool: Executor) -> None:
        self._world = world
        self._pool = pool
        self._running = 0
        self._counting = ThreadLock()
        self._stopped_at: datetime | None = None

    def run(self) -> None:
        """Until it is asked to end; what runs then is given ``GRACE_S``.

        Raises StoreError: the database cannot be read or written when it begins. Later it is tried again.
        """
        next_at = self.begin_due()
        while not self._world.is_stopping():
            left_s = LONGEST_WAIT_S if next_at is None else (next_at - self._world.now()).total_seconds()
            self._world.wait(min(max(left_s, 0.0), LONGEST_WAIT_S))
            if not self._world.is_stopping():
                try:
                    next_at = self.begin_due()
                except AdvisorError as error:
                    self._world.log(f"{error} Trying again within a minute.")
                    next_at = None
        if self._running:
            self._world.log(f"ending: {self._running} running, {format_duration(GRACE_S)} to finish")
        self._stopped_at = self._world.now()

    def begin_due(self) -> datetime | None:
        """Begin what is due, was interrupted or is to be attempted again.

        Returns:
            When the next schedule is due; None for never.
        """
        known = kept.schedules(self._world.store)
        # The oldest of each schedule.
        unfinished = {
            one.schedule_id: one for one in reversed(kept.unfinished_occurrences(self._world.store))
        }
        times = [self._begin(schedule, unfinished.get(schedule.id)) for schedule in known]
        return min((at for at in times if at is not None), default=None)

    def _begin(self, schedule: Schedule, unfinished: Occurrence | None) -> datetime | None:
        try:
            if self._running < MOST_AT_ONCE and self._is_due(schedule, unfinished):
                self._begin_locked(schedule)
            return next_after(schedule, self._world.now())
        except InputError as error:
            # Such as a time zone that this machine does not know: the other schedules go on.
            self._world.log(f"{schedule.name}: {error}")
            return None

    def _is_due(self, schedule: Schedule, unfinished: Occurrence | None) -> bool:
        now = self._world.now()
        if unfinished is not None:
            return unfinished.expires_at is None or unfinished.expires_at <= now
        following = next_after(schedule, schedule.settled_until)
        return following is not None and following <= now

    def _begin_locked(self, schedule: Schedule) -> None:
        try:
            lock = kept.schedule_lock(self._world.store, schedule, self._world.name)
        except LockedError:
            return
        with ExitStack() as unless_submitted:
            unless_submitted.callback(lock.release)
            running = self._next_attempt(schedule)
            if running is None:
                return
            unless_submitted.pop_all()
        with self._counting:
            self._running += 1
        self._pool.submit(self._carry_out, schedule, running, lock)

    def _next_attempt(self, schedule: Schedule) -> Occurrence | None:
        """Note what begins now; None if there is nothing, such as after another service was first."""
        # Read again, now that no other service can change it.
        for before in kept.unfinished_occurrences(self._world.store):
            if before.schedule_id == schedule.id:
                return self._attempt_again(schedule, before)
        world, now = self._world, self._world.now()
        now_due = due(schedule, now, catch_up_s=world.catch_up_s)
        running = None if now_due.run_at is None else _running(schedule, now_due.run_at, world)
        forget_before = now - timedelta(seconds=world.remember_s)
        if not kept.settle(
            world.store, schedule, running, now_due.missed, until=now, forget_before=forget_before
        ):
            return None
        if now_due.missed:
            world.log(_missed_in_words(schedule, now_due))
        return running

    def _attempt_again(self, schedule: Schedule, before: Occurrence) -> Occurrence | None:
        world = self._world
        if before.expires_at is not None and before.expires_at > world.now():
            return None
        if before.attempts >= MOST_ATTEMPTS:
            outcome = f"given up: the service ended during the last of {before.attempts} attempts"
            failed = replace(before, state=OccurrenceState.FAILED, outcome=outcome)
            kept.change_occurrence(world.store, replace(failed, expires_at=None, ended_at=world.now()))
            world.log(f"{schedule.name}: {outcome}")
            return None
        if before.state is OccurrenceState.RUNNING:
            world.log(f"{schedule.name}: was interrupted, it was due at {_in_utc(before.due_at)}")
        running = _running(schedule, before.due_at, world, attempts=before.attempts + 1)
        kept.begin_occurrence(world.store, running)
        return running

    def _carry_out(self, schedule: Schedule, running: Occurrence, lock: Lock) -> None:
        try:
            with lock:
                run_occurrence(schedule, running, self._world, lock, is_cut_short=self._is_cut_short)
        except Exception as error:  # noqa: BLE001 - one schedule's error must not end the service
            self._world.log(f"{schedule.name}: {error_in_words(error)}. It will run again.")
        finally:
            with self._counting:
                self._running -= 1

    def _is_cut_short(self) -> bool:
        if self._world.is_hurried():
            return True
        stopped_at = self._stopped_at
        return stopped_at is not None and (self._world.now() - stopped_at).total_seconds() > GRACE_S


def run_at_once(schedule: Schedule, world: Surroundings) -> Occurrence:
    """Run a schedule now, whenever it is due, and return how that ended.

    Raises LockedError: it runs already.
    """
    with kept.schedule_lock(world.store, schedule, world.name) as lock:
        running = _running(schedule, world.now(), world)
        kept.begin_occurrence(world.store, running)
        try:
            return run_occurrence(schedule, running, world, lock, is_cut_short=lambda: False)
        except KeyboardInterrupt:
            # The person who asked for it: no service runs it again.
            failed = replace(running, state=OccurrenceState.FAILED, outcome="interrupted")
            kept.change_occurrence(world.store, replace(failed, ended_at=world.now()))
            raise


def run_occurrence(
    schedule: Schedule,
    running: Occurrence,
    world: Surroundings,
    lock: Lock,
    *,
    is_cut_short: Callable[[], bool],
) -> Occurrence:
    """Run an occurrence to its end, deliver its output and note both.

    Args:
        schedule: what it belongs to.
        running: as it was noted when it began.
        is_cut_short: whether the command is to be ended now, so that the next service runs it again.

    Returns:
        How it ended; still running where it was stopped or its lock was lost.

    Raises StoreError: the database cannot be written; it will run again.
    """
    again = f", attempt {running.attempts}" if running.attempts > 1 else ""
    world.log(f"{schedule.name}: begins, due at {_in_utc(running.due_at)}{again}")
    ended = _attempt(schedule, running, world, lock, is_cut_short)
    if ended is None:
        world.log(f"{schedule.name}: stopped before its end; the next service runs it again")
        return running
    line = "; ".join(filter(None, (f"{ended.state}, {ended.outcome}", ended.delivery)))
    if ended.expires_at is not None:
        line = f"{ended.outcome}; again at {_in_utc(ended.expires_at)}"
    is_noted = kept.change_occurrence(world.store, ended)
    world.log(f"{schedule.name}: {line if is_noted else _LOST}")
    return ended


def occurrence_key(schedule: Schedule, due_at: datetime) -> str:
    """The key of an occurrence, the same for all attempts: its answer is sent once."""
    return f"{schedule.id}@{due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _attempt(
    schedule: Schedule, running: Occurrence, world: Surroundings, lock: Lock, is_cut_short: Callable[[], bool]
) -> Occurrence | None:
    checked_at = world.now()

    def may_go_on() -> bool:
        nonlocal checked_at
        if is_cut_short():
            return False
        if (now := world.now()) - checked_at < _CHECK:
            return True
        checked_at = now
        return lock.is_held()

    command = Command(
        words=schedule.command,
        folder=schedule.folder,
        key=occurrence_key(schedule, running.due_at),
        timeout_s=world.timeout_s,
    )
    try:
        # Others may write to a shared database without our command line.
        schedulable(schedule.command)
        ran = world.run(command, may_go_on)
    except (InputError, OSError) as error:
        outcome = f"cannot start: {error_in_words(error)}"
        return replace(running, state=OccurrenceState.FAILED, outcome=outcome, ended_at=world.now())
    if ran.ending is Ending.STOPPED:
        return None
    ended = replace(
        running,
        state=OccurrenceState.DONE if ran.exit_code in _ANSWERS else OccurrenceState.FAILED,
        outcome=_outcome(ran, world.timeout_s),
        ended_at=world.now(),
        exit_code=ran.exit_code,
        recommended=ran.recommended,
        output_sha256=ran.output_sha256,
        output=ran.output,
    )
    if ran.undelivered:
        return _undelivered(ended, ran.undelivered, world)
    if schedule.channel is None:
        return ended
    return _delivered(schedule, ended, world, schedule.channel) if lock.is_held() else None


def _running(schedule: Schedule, due_at: datetime, world: Surroundings, *, attempts: int = 1) -> Occurrence:
    return Occurrence(
        schedule_id=schedule.id,
        due_at=due_at,
        state=OccurrenceState.RUNNING,
        holder=world.name,
        started_at=world.now(),
        attempts=attempts,
    )


def _outcome(ran: Ran, timeout_s: float) -> str:
    if ran.ending is Ending.TIMED_OUT:
        return f"ended after {format_duration(timeout_s)}, the limit of schedule.timeout"
    if ran.recommended is not None:
        return f"recommends {ran.recommended}"
    return _MEANINGS.get(ran.exit_code or 0, f"exit code {ran.exit_code}")


def _delivered(schedule: Schedule, ended: Occurrence, world: Surroundings, channel: str) -> Occurrence:
    why_not = _why_not(schedule, ended, kept.last_delivered(world.store, schedule.id))
    if why_not is not None:
        return replace(ended, delivery=f"not sent: {why_not}")
    key = occurrence_key(schedule, ended.due_at)
    try:
        delivery = world.deliver(Outgoing(channel=channel, key=key, schedule=schedule, ended=ended))
    except DeliveryError as error:
        return _undelivered(ended, str(error), world)
    except AdvisorError as error:
        return _failed(ended, str(error))
    return replace(ended, delivery=delivery)


def _undelivered(ended: Occurrence, why: str, world: Surroundings) -> Occurrence:
    """To be run again under the same key, so that what did arrive is not sent twice; or given up."""
    if ended.attempts >= MOST_ATTEMPTS:
        return _failed(ended, why)
    return replace(
        ended,
        state=OccurrenceState.CLAIMED,
        ended_at=None,
        expires_at=world.now() + timedelta(seconds=_POSTPONED_S * 2 ** (ended.attempts - 1)),
        outcome=f"not delivered yet: {why}",
    )


def _failed(ended: Occurrence, why: str) -> Occurrence:
    outcome = f"{ended.outcome}, but not delivered: {why}"
    return replace(ended, state=OccurrenceState.FAILED, outcome=outcome)


def _why_not(schedule: Schedule, ended: Occurrence, before: Occurrence | None) -> str | None:
    code = ended.exit_code
    is_new = before is None or (before.exit_code, before.recommended) != (code, ended.recommended)
    is_wanted, why_not = {
        DeliverWhen.ALWAYS: (True, ""),
        DeliverWhen.OK: (code == 0, "wanted only with exit code 0"),
        DeliverWhen.FAILS: (code != 0, "wanted only with another exit code than 0"),
        DeliverWhen.OVER: (code == ThresholdExceededError.exit_code, "wanted only above the threshold"),
        DeliverWhen.CHANGES: (is_new, "nothing changed"),
    }[schedule.when]
    return None if is_wanted else why_not


def _missed_in_words(schedule: Schedule, now_due: Due) -> str:
    number = f"{'' if now_due.are_all else 'more than '}{len(now_due.missed)}"
    caught_up = "" if now_due.run_at is None else f"; the latest one, of {_in_utc(now_due.run_at)}, runs now"
    return f"{schedule.name}: missed {number} since {_in_utc(now_due.missed[0])}{caught_up}"


def _in_utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


P = ParamSpec("P")
T = TypeVar("T")
# How soon a service notices that it is to end.
_NAP_S = 0.25
_MOST_REMEMBERED_S = 100 * 365 * DAY_S


@dataclass(slots=True)
class Stop:
    """Whether a service was asked to end; a handler of signals sets it, and may do no more than that."""

    is_asked: bool = False
    is_hurried: bool = False

    def __call__(self, *_: object) -> None:
        """Ask; the second time nothing may be finished any more."""
        self.is_hurried, self.is_asked = self.is_asked, True


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Where output and log lines go."""

    deliver: Callable[[Outgoing], str]
    """As in `Surroundings`."""
    log: Callable[[str], None]
    """Takes a line of what happens."""


class Inline(Executor):
    """Runs what it is given at once, one after the other."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> Future[T]:
        """Run to the end."""
        future: Future[T] = Future()
        future.set_result(call(*args, **more))
        return future


def serve(database: StoreSettings, limits: ScheduleSettings, voice: Voice, stop: Stop) -> None:
    """Run what is due until it is asked to end.

    Raises StoreError: the database cannot be read or written when it begins.
    """
    with _surroundings(database, limits, voice, stop) as world, ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        voice.log(f"{world.name} runs the schedules of {world.store.place}; Ctrl-C or SIGTERM ends it")
        ScheduleService(world, pool).run()
    voice.log("ended")


def run_due(database: StoreSettings, limits: ScheduleSettings, voice: Voice) -> None:
    """Run what is due now, one after the other, and return."""
    with _surroundings(database, limits, voice, Stop()) as world:
        ScheduleService(world, Inline()).begin_due()


def run_now(name: str, database: StoreSettings, limits: ScheduleSettings, voice: Voice) -> Occurrence:
    """Run a schedule at once, whenever it is due, and return how that ended.

    Raises:
        InputError: there is none of this name.
        LockedError: it is running already.
    """
    schedule = planned_schedule(name, database).schedule
    with _surroundings(database, limits, voice, Stop()) as world:
        try:
            return run_at_once(schedule, world)
        except LockedError as error:
            raise LockedError(f"{name} runs already: {error}") from None


@contextmanager
def _surroundings(
    database: StoreSettings, limits: ScheduleSettings, voice: Voice, stop: Stop
) -> Iterator[Surroundings]:
    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        while not stop.is_asked and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, _NAP_S))

    with open_store(database.url) as store:
        yield Surroundings(
            store=store,
            catch_up_s=limits.catch_up,
            timeout_s=limits.timeout,
            # Databases hold no time before the year 1.
            remember_s=min(database.retention, _MOST_REMEMBERED_S),
            name=f"process {os.getpid()} on {socket.gethostname()}",
            now=now,
            wait=wait,
            is_stopping=lambda: stop.is_asked,
            is_hurried=lambda: stop.is_hurried,
            run=run_command,
            deliver=voice.deliver,
            log=voice.log,
        )
