"""One occurrence of a schedule, from its claim to its end: run, deliver, note."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, DeliveryError
from advisor.core.redaction import error_in_words
from advisor.core.units import MINUTE_S, format_duration
from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Schedule
from advisor.service.child_commands import Command, Ending, Ran

if TYPE_CHECKING:
    from advisor.store.handle import Store
    from advisor.store.occurrences import Claim, Claimant

CLAIM_S = 120.0
"""How long a service that was killed keeps the others from its occurrence."""
_RENEW_S = 20.0
MOST_ATTEMPTS = 5
"""How often a command is started whose service dies, or whose output reaches nobody."""
_POSTPONED_S = 5 * MINUTE_S
_LOST = "another service took it over"
# Exit codes of an answer: nothing feasible is one, wrong words are none.
_ANSWERS = (0, 3, 4, 5)
_MEANINGS = {0: "exit code 0", 4: "exit code 4: nothing feasible", 3: "exit code 3: the policy removes all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What a command wrote, on its way to a channel.

    Attributes:
        key: a channel gets each key once.
    """

    channel: str
    key: str
    schedule: Schedule
    ended: Occurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of a service.

    Attributes:
        catch_up_s: how late the latest occurrence may still run.
        timeout_s: of one command.
        remember_s: how long occurrences are kept.
    """

    catch_up_s: float
    timeout_s: float
    remember_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The world of a service: its clock, what runs and delivers, and who hears of it.

    Attributes:
        name: for people to read who holds a claim.
        now: with a time zone.
        wait: seconds to sleep at most; returns early when there is something to do.
        is_stopping: whether it was asked to end.
        is_hurried: whether what runs may not be finished, either.
        run: runs a command; asks its second argument now and then whether it may go on.
        deliver: sends and returns a few words about it. Raises ``DeliveryError`` where it cannot now, and
            another ``AdvisorError`` where it never can.
        log: hears a line of what happens.
    """

    name: str
    now: Callable[[], datetime]
    wait: Callable[[float], None]
    is_stopping: Callable[[], bool]
    is_hurried: Callable[[], bool]
    run: Callable[[Command, Callable[[], bool]], Ran]
    deliver: Callable[[Outgoing], str]
    log: Callable[[str], None]


def occurrence_key(claim: Claim) -> str:
    """What an occurrence is called wherever it runs: its answer is sent once."""
    return f"{claim.schedule.id}@{claim.due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def run_claimed(
    claim: Claim, store: Store, world: Surroundings, limits: Limits, *, is_cut_short: Callable[[], bool]
) -> None:
    """Run a claimed occurrence to its end, or give it back where the service ends before.

    Raises:
        StoreError: the database cannot be written; others will take over when the claim runs out.
    """
    from advisor.store.occurrences import begin, end, give_back

    name = claim.schedule.name
    if claim.attempts >= MOST_ATTEMPTS:
        outcome = f"given up: the service ended during the last of {claim.attempts} attempts"
        end(store, claim, _ended(claim, world, OccurrenceState.FAILED, outcome))
        world.log(f"{name}: {outcome}")
        return
    if not begin(store, claim, claimant(world)):
        world.log(f"{name}: {_LOST}")
        return
    again = f", attempt {claim.attempts + 1}" if claim.attempts else ""
    world.log(f"{name}: begins, due at {utc_text(claim.due_at)}{again}")
    keeper = _Keeper(claim, store, world, is_cut_short)
    attempt = _attempt(claim, store, world, limits, keeper)
    if attempt is not None:
        _note_end(claim, store, world, attempt)
    elif keeper.is_lost or not give_back(store, claim, world.now()):
        world.log(f"{name}: {_LOST}")
    else:
        world.log(f"{name}: stopped before its end; the next service runs it again")


def _note_end(claim: Claim, store: Store, world: Surroundings, attempt: _Attempt) -> None:
    from advisor.store.occurrences import end, postpone

    ended = attempt.ended
    if attempt.undelivered and claim.attempts + 1 < MOST_ATTEMPTS:
        # Run again under the same key: what did arrive is not sent twice.
        until = world.now() + timedelta(seconds=_POSTPONED_S * 2**claim.attempts)
        words = f"not delivered yet: {attempt.undelivered}"
        is_ours = postpone(store, claim, until, words)
        line = f"{words}; again at {utc_text(until)}"
    else:
        is_ours = end(store, claim, ended)
        line = "; ".join(filter(None, (f"{ended.state}, {ended.outcome}", ended.delivery)))
    world.log(f"{claim.schedule.name}: {line if is_ours else _LOST}")


def interrupted(claim: Claim, store: Store, world: Surroundings) -> None:
    """Note that whoever asked for it stopped it.

    Raises:
        StoreError: the database cannot be written.
    """
    from advisor.store.occurrences import end

    end(store, claim, _ended(claim, world, OccurrenceState.FAILED, "interrupted"))


def claimant(world: Surroundings) -> Claimant:
    """This service, at this moment."""
    from advisor.store.occurrences import Claimant

    return Claimant(name=world.name, now=world.now(), for_s=CLAIM_S)


def utc_text(moment: datetime) -> str:
    """As log lines show it."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """How a command ended.

    Attributes:
        undelivered: why its output did not arrive, though it may later; "" where nothing is missing.
    """

    ended: Occurrence
    undelivered: str = ""


class _Keeper:
    """Keeps a claim while its command runs, and says when the command must end."""

    def __init__(
        self, claim: Claim, store: Store, world: Surroundings, is_cut_short: Callable[[], bool]
    ) -> None:
        self._claim = claim
        self._store = store
        self._world = world
        self._is_cut_short = is_cut_short
        self._renewed_at = world.now()
        self.is_lost = False

    def __call__(self) -> bool:
        """Whether the command may go on."""
        if self._is_cut_short():
            return False
        if (self._world.now() - self._renewed_at).total_seconds() >= _RENEW_S:
            self.renew()
        return not self.is_lost

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Keep the claim while something runs that asks nobody, such as a channel that is tried for long."""
        is_over = Event()

        def renew() -> None:
            while not is_over.wait(_RENEW_S):
                self.renew()

        thread = Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def renew(self) -> None:
        """Keep the claim for a while from now on."""
        from advisor.store.occurrences import renew

        self._renewed_at = self._world.now()
        try:
            self.is_lost = not renew(self._store, self._claim, claimant(self._world))
        except AdvisorError as error:
            # The command need not suffer: the claim lasts for several renewals.
            self._world.log(f"{self._claim.schedule.name}: {error}")


def _attempt(
    claim: Claim, store: Store, world: Surroundings, limits: Limits, keeper: _Keeper
) -> _Attempt | None:
    """Run the command and deliver its output; None if it was stopped."""
    schedule = claim.schedule
    command = Command(
        words=schedule.command,
        folder=schedule.folder,
        key=occurrence_key(claim),
        timeout_s=limits.timeout_s,
    )
    try:
        ran = world.run(command, keeper)
    except OSError as error:
        outcome = f"cannot start: {error_in_words(error)}"
        return _Attempt(ended=_ended(claim, world, OccurrenceState.FAILED, outcome))
    if ran.ending is Ending.STOPPED:
        return None
    ended = _ended_as(claim, world, limits, ran)
    if ran.undelivered:
        return _undelivered(ended, ran.undelivered)
    if schedule.channel is None:
        return _Attempt(ended=ended)
    keeper.renew()
    if keeper.is_lost:
        return None
    with keeper.renewing():
        return _delivered(claim, store, world, ended, schedule.channel)


def _undelivered(ended: Occurrence, why: str) -> _Attempt:
    outcome = f"{ended.outcome}, but not delivered: {why}"
    failed = replace(ended, state=OccurrenceState.FAILED, outcome=outcome)
    return _Attempt(ended=failed, undelivered=why)


def _ended_as(claim: Claim, world: Surroundings, limits: Limits, ran: Ran) -> Occurrence:
    state = OccurrenceState.DONE if ran.exit_code in _ANSWERS else OccurrenceState.FAILED
    ended = _ended(claim, world, state, _outcome(ran, limits))
    return replace(
        ended,
        exit_code=ran.exit_code,
        recommended=ran.recommended,
        output_sha256=ran.output_sha256,
        output=ran.output,
    )


def _ended(claim: Claim, world: Surroundings, state: OccurrenceState, outcome: str) -> Occurrence:
    return Occurrence(
        schedule_id=claim.schedule.id,
        due_at=claim.due_at,
        state=state,
        holder=world.name,
        ended_at=world.now(),
        outcome=outcome,
    )


def _outcome(ran: Ran, limits: Limits) -> str:
    if ran.ending is Ending.TIMED_OUT:
        return f"ended after {format_duration(limits.timeout_s)}, the limit of schedule.timeout"
    if ran.recommended is not None:
        return f"recommends {ran.recommended}"
    return _MEANINGS.get(ran.exit_code or 0, f"exit code {ran.exit_code}")


def _delivered(claim: Claim, store: Store, world: Surroundings, ended: Occurrence, channel: str) -> _Attempt:
    from advisor.store.occurrences import last_delivered

    before = last_delivered(store, claim.schedule.id)
    why_not = _why_not(claim.schedule, ended, before)
    if why_not is not None:
        return _Attempt(ended=replace(ended, delivery=f"not sent: {why_not}"))
    outgoing = Outgoing(
        channel=channel,
        key=occurrence_key(claim),
        schedule=claim.schedule,
        ended=ended,
    )
    try:
        return _Attempt(ended=replace(ended, delivery=world.deliver(outgoing)))
    except DeliveryError as error:
        return _undelivered(ended, str(error))
    except AdvisorError as error:
        return _Attempt(ended=_undelivered(ended, str(error)).ended)


def _why_not(schedule: Schedule, ended: Occurrence, before: Occurrence | None) -> str | None:
    """Why nobody wants this output; None if it is wanted."""
    match schedule.when:
        case DeliverWhen.ALWAYS:
            return None
        case DeliverWhen.OK:
            return None if ended.exit_code == 0 else "wanted only with exit code 0"
        case DeliverWhen.FAILS:
            return None if ended.exit_code != 0 else "wanted only with another exit code than 0"
        case DeliverWhen.CHANGES:
            if before is None or _answer(before) != _answer(ended):
                return None
            return "nothing changed"


def _answer(occurrence: Occurrence) -> tuple[int | None, str | None]:
    return occurrence.exit_code, occurrence.recommended
