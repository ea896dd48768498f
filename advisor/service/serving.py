"""Schedules as they run: by a service, all that is due once, or one at a person's word."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from advisor.core.errors import InputError, LeaseTakenError
from advisor.core.units import DAY_S
from advisor.core.values import Occurrence
from advisor.service.child_commands import run_command
from advisor.service.live import now, opened
from advisor.service.occurrence_run import interrupted, run_claimed
from advisor.service.schedule_loop import MOST_AT_ONCE, ScheduleService
from advisor.service.schedule_world import Limits, Outgoing, Surroundings

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.store.handle import Store

# How soon a service hears that it is to end.
P = ParamSpec("P")
T = TypeVar("T")
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
    """What a service says, and to whom.

    Attributes:
        deliver: as of `Surroundings`.
        log: hears a line of what happens.
    """

    deliver: Callable[[Outgoing], str]
    log: Callable[[str], None]


class Inline(Executor):
    """Runs what it is given at once, one after the other."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> Future[T]:
        """Run to the end."""
        future: Future[T] = Future()
        future.set_result(call(*args, **more))
        return future


def serve(config: Config, voice: Voice, stop: Stop) -> None:
    """Run what is due until it is asked to end.

    Raises:
        StoreError: the database cannot be read or written when it begins.
    """
    with opened(config) as store, ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        world = _surroundings(store, config, voice, stop)
        voice.log(f"{world.name} runs the schedules of {store.place}; Ctrl-C or SIGTERM ends it")
        ScheduleService(world, pool).run()
    voice.log("ended")


def run_due(config: Config, voice: Voice) -> None:
    """Run what is due now, one after the other, and return.

    Raises:
        StoreError: the database cannot be read or written.
    """
    with opened(config) as store:
        world = _surroundings(store, config, voice, Stop())
        ScheduleService(world, Inline()).begin_due()


def run_now(name: str, config: Config, voice: Voice) -> Occurrence:
    """Run a schedule at once, whenever it is due, and say how it ended.

    Raises:
        InputError: there is none of this name.
        LeaseTakenError: it is running already.
        StoreError: the database cannot be read or written.
    """
    from advisor.service.scheduling import planned_schedule
    from advisor.store.occurrences import Claim, claim_now, occurrence_at

    schedule = planned_schedule(name, config).schedule
    with opened(config) as store:
        world = _surroundings(store, config, voice, Stop())
        claim = Claim(schedule=schedule, due_at=world.now())
        if not claim_now(store, claim, world.claimant()):
            raise LeaseTakenError(f"{name} runs already: `advisor schedule show {name}` says where.")
        try:
            run_claimed(claim, world, is_cut_short=lambda: False)
        except KeyboardInterrupt:
            # Whoever asked for it has thought better of it: no service takes it over.
            interrupted(claim, world)
            raise
        ended = occurrence_at(store, schedule.id, claim.due_at)
    if ended is None:
        raise InputError(f"{name} was removed while it ran.")
    return ended


def _limits(config: Config) -> Limits:
    """As the settings have them."""
    settings = config.settings.schedule
    return Limits(
        catch_up_s=settings.catch_up,
        timeout_s=settings.timeout,
        # Databases hold no time before the year 1.
        remember_s=min(config.settings.store.retention, _MOST_REMEMBERED_S),
    )


def _surroundings(store: Store, config: Config, voice: Voice, stop: Stop) -> Surroundings:
    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        while not stop.is_asked and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, _NAP_S))

    return Surroundings(
        store=store,
        limits=_limits(config),
        name=f"process {os.getpid()} on {socket.gethostname()}",
        now=now,
        wait=wait,
        is_stopping=lambda: stop.is_asked,
        is_hurried=lambda: stop.is_hurried,
        run=run_command,
        deliver=voice.deliver,
        log=voice.log,
    )
