"""How long and how often a channel is tried, by a clock that tests can set."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time and chance.

    Attributes:
        now: with a time zone.
        monotonic_s: seconds that only grow.
        sleep: for so many seconds.
        chance: between 0 and 1.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a channel is tried.

    Attributes:
        total_s: after which no further attempt begins.
        attempt_s: for one attempt.
        first_wait_s: before the second attempt; doubles with each.
        longest_wait_s: between two attempts, unless the other side asks for more.
    """

    total_s: float
    attempt_s: float = 30.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def wait_s(self, attempts: int, asked_s: float | None, chance: float) -> float:
        """Seconds until the next attempt: what the other side asks for, else twice the last with jitter.

        >>> Patience(total_s=300).wait_s(3, None, chance=0.5)
        3.0
        """
        if asked_s is not None:
            return asked_s
        longest_s = min(self.first_wait_s * 2.0 ** min(attempts - 1, 30), self.longest_wait_s)
        # Between half and all of it: senders that failed together come back apart.
        return longest_s * (1 + chance) / 2
