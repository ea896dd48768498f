"""Runs schedules: as a service, once all that are due, or one at once."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from advisor.config.settings import ScheduleSettings, StoreSettings
from advisor.core.errors import LockedError
from advisor.core.units import DAY_S
from advisor.core.values import Occurrence
from advisor.service.prices.live import now
from advisor.service.schedule.child_commands import run_command
from advisor.service.schedule.managing import planned_schedule
from advisor.service.schedule.running import (
    MOST_AT_ONCE,
    Limits,
    Outgoing,
    ScheduleService,
    Surroundings,
    run_at_once,
)
from advisor.store.database import open_store

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
    """Where output and log lines go.

    Attributes:
        deliver: as in `Surroundings`.
        log: takes a line of what happens.
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


def serve(database: StoreSettings, limits: ScheduleSettings, voice: Voice, stop: Stop) -> None:
    """Run what is due until it is asked to end.

    Args:
        database: where schedules are kept, and for how long what became of them.
        limits: how long a command may take, and how late it may begin.
        voice: where output and log lines go.
        stop: says that the service is to end.

    Raises StoreError: the database cannot be read or written when it begins.
    """
    with _surroundings(database, limits, voice, stop) as world, ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        voice.log(f"{world.name} runs the schedules of {world.store.place}; Ctrl-C or SIGTERM ends it")
        ScheduleService(world, pool).run()
    voice.log("ended")


def run_due(database: StoreSettings, limits: ScheduleSettings, voice: Voice) -> None:
    """Run what is due now, one after the other, and return.

    Raises StoreError: the database cannot be read or written.
    """
    with _surroundings(database, limits, voice, Stop()) as world:
        ScheduleService(world, Inline()).begin_due()


def run_now(name: str, database: StoreSettings, limits: ScheduleSettings, voice: Voice) -> Occurrence:
    """Run a schedule at once, whenever it is due, and return how that ended.

    Raises:
        InputError: there is none of this name.
        LockedError: it is running already.
        StoreError: the database cannot be read or written.
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
            limits=Limits(
                catch_up_s=limits.catch_up,
                timeout_s=limits.timeout,
                # Databases hold no time before the year 1.
                remember_s=min(database.retention, _MOST_REMEMBERED_S),
            ),
            name=f"process {os.getpid()} on {socket.gethostname()}",
            now=now,
            wait=wait,
            is_stopping=lambda: stop.is_asked,
            is_hurried=lambda: stop.is_hurried,
            run=run_command,
            deliver=voice.deliver,
            log=voice.log,
        )
