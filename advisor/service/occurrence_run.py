"""One occurrence of a schedule, from its claim to its end: run, deliver, note."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, DeliveryError, InputError
from advisor.core.redaction import error_in_words
from advisor.core.units import MINUTE_S, format_duration
from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Schedule
from advisor.schedule.commands import schedulable
from advisor.service.child_commands import Command, Ending, Ran
from advisor.service.claim_keeping import ClaimKeeper
from advisor.service.schedule_world import Limits, Outgoing, Surroundings, utc_text

if TYPE_CHECKING:
    from advisor.store.occurrences import Claim

MOST_ATTEMPTS = 5
"""How often a command is started whose service dies, or whose output reaches nobody."""
_POSTPONED_S = 5 * MINUTE_S
_LOST = "another service took it over"
# Exit codes of an answer: nothing feasible is one, wrong words are none.
_ANSWERS = (0, 3, 4, 5)
_MEANINGS = {0: "exit code 0", 4: "exit code 4: nothing feasible", 3: "exit code 3: the policy removes all"}


def occurrence_key(claim: Claim) -> str:
    """What an occurrence is called wherever it runs: its answer is sent once."""
    return f"{claim.schedule.id}@{claim.due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def run_claimed(claim: Claim, world: Surroundings, *, is_cut_short: Callable[[], bool]) -> None:
    """Run a claimed occurrence to its end, or give it back where the service ends before.

    Raises:
        StoreError: the database cannot be written; others will take over when the claim runs out.
    """
    from advisor.store.occurrences import begin, end, give_back

    name, store = claim.schedule.name, world.store
    if claim.attempts >= MOST_ATTEMPTS:
        outcome = f"given up: the service ended during the last of {claim.attempts} attempts"
        end(store, claim, _ended(claim, world, OccurrenceState.FAILED, outcome))
        world.log(f"{name}: {outcome}")
        return
    if not begin(store, claim, world.claimant()):
        world.log(f"{name}: {_LOST}")
        return
    again = f", attempt {claim.attempts + 1}" if claim.attempts else ""
    world.log(f"{name}: begins, due at {utc_text(claim.due_at)}{again}")
    keeper = ClaimKeeper(claim, world, is_cut_short)
    attempt = _attempt(claim, world, keeper)
    if attempt is not None:
        _note_end(claim, world, attempt)
    elif keeper.is_lost or not give_back(store, claim, world.now()):
        world.log(f"{name}: {_LOST}")
    else:
        world.log(f"{name}: stopped before its end; the next service runs it again")


def _note_end(claim: Claim, world: Surroundings, attempt: _Attempt) -> None:
    from advisor.store.occurrences import end, postpone

    ended = attempt.ended
    if attempt.undelivered and claim.attempts + 1 < MOST_ATTEMPTS:
        # Run again under the same key: what did arrive is not sent twice.
        until = world.now() + timedelta(seconds=_POSTPONED_S * 2**claim.attempts)
        words = f"not delivered yet: {attempt.undelivered}"
        is_ours = postpone(world.store, claim, until, words)
        line = f"{words}; again at {utc_text(until)}"
    else:
        is_ours = end(world.store, claim, ended)
        line = "; ".join(filter(None, (f"{ended.state}, {ended.outcome}", ended.delivery)))
    world.log(f"{claim.schedule.name}: {line if is_ours else _LOST}")


def interrupted(claim: Claim, world: Surroundings) -> None:
    """Note that whoever asked for it stopped it.

    Raises:
        StoreError: the database cannot be written.
    """
    from advisor.store.occurrences import end

    end(world.store, claim, _ended(claim, world, OccurrenceState.FAILED, "interrupted"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """How a command ended.

    Attributes:
        undelivered: why its output did not arrive, though it may later; "" where nothing is missing.
    """

    ended: Occurrence
    undelivered: str = ""


def _attempt(claim: Claim, world: Surroundings, keeper: ClaimKeeper) -> _Attempt | None:
    """Run the command and deliver its output; None if it was stopped."""
    schedule = claim.schedule
    command = Command(
        words=schedule.command,
        folder=schedule.folder,
        key=occurrence_key(claim),
        timeout_s=world.limits.timeout_s,
    )
    try:
        # Whoever writes to a shared database need not have asked our command line.
        schedulable(schedule.command)
        ran = world.run(command, keeper)
    except (InputError, OSError) as error:
        outcome = f"cannot start: {error_in_words(error)}"
        return _Attempt(ended=_ended(claim, world, OccurrenceState.FAILED, outcome))
    if ran.ending is Ending.STOPPED:
        return None
    ended = _ended_as(claim, world, ran)
    if ran.undelivered:
        return _undelivered(ended, ran.undelivered)
    if schedule.channel is None:
        return _Attempt(ended=ended)
    keeper.renew()
    if keeper.is_lost:
        return None
    with keeper.renewing():
        return _delivered(claim, world, ended, schedule.channel)


def _undelivered(ended: Occurrence, why: str) -> _Attempt:
    outcome = f"{ended.outcome}, but not delivered: {why}"
    failed = replace(ended, state=OccurrenceState.FAILED, outcome=outcome)
    return _Attempt(ended=failed, undelivered=why)


def _ended_as(claim: Claim, world: Surroundings, ran: Ran) -> Occurrence:
    state = OccurrenceState.DONE if ran.exit_code in _ANSWERS else OccurrenceState.FAILED
    ended = _ended(claim, world, state, _outcome(ran, world.limits))
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


def _delivered(claim: Claim, world: Surroundings, ended: Occurrence, channel: str) -> _Attempt:
    from advisor.store.occurrences import last_delivered

    before = last_delivered(world.store, claim.schedule.id)
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
