"""What a service of schedules works with: its database, its clock, what runs and what delivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from advisor.core.values import Occurrence, Schedule
from advisor.service.child_commands import Command, Ran

if TYPE_CHECKING:
    from advisor.store.handle import Store
    from advisor.store.occurrences import Claimant

CLAIM_S = 120.0
"""How long a service that was killed keeps the others from its occurrence."""


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
        store: what the services share.
        limits: of time.
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

    store: Store
    limits: Limits
    name: str
    now: Callable[[], datetime]
    wait: Callable[[float], None]
    is_stopping: Callable[[], bool]
    is_hurried: Callable[[], bool]
    run: Callable[[Command, Callable[[], bool]], Ran]
    deliver: Callable[[Outgoing], str]
    log: Callable[[str], None]

    def claimant(self) -> Claimant:
        """This service, at this moment."""
        from advisor.store.occurrences import Claimant

        return Claimant(name=self.name, now=self.now(), for_s=CLAIM_S)


def utc_text(moment: datetime) -> str:
    """As log lines show it."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
