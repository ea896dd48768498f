"""One message to one channel, by way of the outbox: sent once, tried again where that is right.

An attempt ends in time, and after that nothing is sent any more.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from advisor.core.deadlines import LateError, within
from advisor.core.errors import StoreError
from advisor.core.plugins import error_in_words
from advisor.core.units import format_duration
from advisor.delivery import channel as sending
from advisor.store import outbox
from advisor.store.handle import Store
from advisor.store.outbox import Claim, LostClaimError, State

_ATTEMPT_S = 30.0
_FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
# Beyond all attempts: recording how they ended.
_SPARE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time and chance."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """With a time zone."""
    monotonic_s: Callable[[], float] = time.monotonic
    """Seconds that only grow."""
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
    """Between 0 and 1."""


def wait_s(attempts: int, asked_s: float | None, chance: float) -> float:
    """Seconds until the next attempt: what the other side asks for, else twice the last with jitter.

    >>> wait_s(3, None, chance=0.5)
    3.0
    """
    if asked_s is not None:
        return asked_s
    longest_s = min(_FIRST_WAIT_S * 2.0 ** min(attempts - 1, 30), LONGEST_WAIT_S)
    # Between half and all of it: senders that failed together come back apart.
    return longest_s * (1 + chance) / 2


class Outcome(StrEnum):
    """What became of a message on its way to a channel."""

    SENT = "sent"
    SENT_BEFORE = "sent-before"
    PERHAPS = "perhaps"
    BUSY = "busy"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of a message on its way to a channel."""

    channel: str
    target: str
    """Where the channel leads, without secrets."""
    outcome: Outcome
    at: datetime
    """When that was; of `BUSY`, since when."""
    attempts: int
    """Of all processes that tried."""
    is_resumed: bool = False
    """Whether an earlier process was cut off in the middle of sending it."""
    error: str | None = None
    """What went wrong, without secrets; also which recipients were refused."""

    @property
    def is_there(self) -> bool:
        """Whether it surely reached all recipients."""
        return self.outcome in (Outcome.SENT, Outcome.SENT_BEFORE) and self.error is None


_OF_OTHERS = {
    State.SENT: Outcome.SENT_BEFORE,
    State.PERHAPS: Outcome.PERHAPS,
    State.WAITING: Outcome.BUSY,
    State.SENDING: Outcome.BUSY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What sends: the outbox, how long a channel is tried, and where progress goes."""

    store: Store
    total_s: float
    """After which no further attempt begins."""
    clock: Clock
    on_retry: Callable[[str, float], None] = lambda why, wait_s: None  # noqa: ARG005
    """Called with the reason for another attempt, and in how many seconds it follows."""

    def send(self, name: str, channel: sending.Channel, message: sending.Message, key: str) -> Delivery:
        """Send a message to a channel, unless it was sent before or may have been.

        Raises StoreError: the outbox cannot be read or written.
        """
        claim = outbox.claim(
            self.store,
            key,
            name,
            content_sha256=message.sha256,
            drops_repeats=channel.drops_repeats,
            for_s=self.total_s + _ATTEMPT_S + _SPARE_S,
            now=self.clock.now(),
        )
        posted = claim.posted
        parcel = sending.Parcel(message=message, key=key, at=posted.begun_at)
        if claim.token is None:
            return Delivery(
                channel=name,
                target=parcel.fill(channel.target),
                outcome=_OF_OTHERS[posted.state],
                at=posted.changed_at,
                attempts=posted.attempts,
                error=posted.error,
            )
        return _Sending(post=self, name=name, channel=channel, parcel=parcel, claim=claim).run()


@dataclass(slots=True, kw_only=True)
class _Sending:
    post: Post
    name: str
    channel: sending.Channel
    parcel: sending.Parcel
    claim: Claim
    has_begun: bool = False
    is_uncertain: bool = False

    def run(self) -> Delivery:
        attempts = self.claim.posted.attempts
        end_s = self.post.clock.monotonic_s() + self.post.total_s
        try:
            while True:
                attempts += 1
                try:
                    self.has_begun = False
                    problem = attempt(self.channel, self.parcel, self._begin, within_s=_ATTEMPT_S)
                except sending.SendingError as error:
                    pause_s = self._pause_s(error, attempts, end_s)
                    if pause_s is None:
                        return self._end(self._state_at_the_end(), attempts, str(error))
                    if not self.is_uncertain:
                        self._settle(State.WAITING, attempts, str(error))
                    self.post.on_retry(str(error), pause_s)
                    self.post.clock.sleep(pause_s)
                else:
                    return self._end(State.SENT, attempts, problem)
        except LostClaimError:
            return self._delivery(Outcome.BUSY, attempts, None)
        except BaseException:
            # Record what is known, so that it need not be guessed later.
            self.is_uncertain |= self.has_begun
            with suppress(StoreError, LostClaimError):
                self._end(self._state_at_the_end(), attempts, "interrupted")
            raise

    def _begin(self) -> None:
        outbox.settle(self.post.store, self.claim, State.SENDING, now=self.post.clock.now())
        self.has_begun = True

    def _pause_s(self, error: sending.SendingError, attempts: int, end_s: float) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        self.has_begun = False
        self.is_uncertain |= isinstance(error, sending.UncertainError)
        if isinstance(error, sending.PermanentError) or (
            self.is_uncertain and not self.channel.drops_repeats
        ):
            return None
        asked_s = error.wait_s if isinstance(error, sending.TemporaryError) else None
        clock = self.post.clock
        pause_s = wait_s(attempts, asked_s, clock.chance())
        return pause_s if clock.monotonic_s() + pause_s < end_s else None

    def _state_at_the_end(self) -> State:
        return State.PERHAPS if self.is_uncertain or self.claim.is_resumed else State.FAILED

    def _end(self, state: State, attempts: int, error: str | None) -> Delivery:
        self._settle(state, attempts, error)
        return self._delivery(Outcome(state), attempts, error)

    def _settle(self, state: State, attempts: int, error: str | None) -> None:
        now = self.post.clock.now()
        outbox.settle(self.post.store, self.claim, state, error=error, attempts=attempts, now=now)

    def _delivery(self, outcome: Outcome, attempts: int, error: str | None) -> Delivery:
        return Delivery(
            channel=self.name,
            target=self.parcel.fill(self.channel.target),
            outcome=outcome,
            at=self.post.clock.now(),
            attempts=attempts,
            is_resumed=self.claim.is_resumed,
            error=error,
        )


class _CalledOffError(Exception):
    pass


class _Gate:
    """What has begun cannot be called off; what was called off cannot begin any more."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._has_begun = self._is_off = False

    def pass_(self) -> None:
        with self._lock:
            if self._is_off:
                raise _CalledOffError
            self._begin()
            self._has_begun = True

    def call_off(self) -> bool:
        """Whether it was too late for that."""
        with self._lock:
            self._is_off = True
            return self._has_begun


def attempt(
    channel: sending.Channel, parcel: sending.Parcel, begin: Callable[[], None], *, within_s: float
) -> str | None:
    """Send once; None, or which recipients were refused.

    Args:
        begin: is called right before the step that cannot be taken back.
        within_s: for all of it, also if a server sends a byte a second.

    Raises:
        SendingError: of one of the three kinds, without secrets.
        LostClaimError: as `begin` says.
        StoreError: the same.
    """
    gate = _Gate(begin)
    try:
        return within(within_s, lambda: channel.send(parcel, gate.pass_))
    except LateError:
        words = f"no answer within {format_duration(within_s)}"
        raise (sending.UncertainError(words) if gate.call_off() else sending.TemporaryError(words)) from None
    except sending.SecretError as error:
        raise sending.PermanentError(channel.secrets.hide(str(error))) from None
    except (StoreError, LostClaimError):
        raise
    except sending.SendingError as error:
        error.args = (channel.secrets.hide(str(error)),)
        raise
    except Exception as error:  # noqa: BLE001 - libraries may raise anything, and there are other channels
        words = channel.secrets.hide(error_in_words(error))
        raise (sending.UncertainError(words) if gate.call_off() else sending.PermanentError(words)) from None
    finally:
        gate.call_off()
