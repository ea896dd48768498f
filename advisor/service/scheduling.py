"""Schedules: added, listed, shown and removed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, did_you_mean
from advisor.core.values import DeliverWhen, Occurrence, Schedule
from advisor.schedule.commands import channels_in, check_name, check_words, name_for, schedulable
from advisor.schedule.times import next_after
from advisor.service.delivering import check_channels
from advisor.service.live import now, opened

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.service.listening import Listener
    from advisor.store.handle import Store

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRequest:
    """A command and when it shall run.

    Attributes:
        cron: five fields.
        zone: whose clock they mean.
        command: what follows ``advisor``.
        folder: where it runs.
        name: None for one that follows from the command.
        channel: who gets its output; None for nobody.
        when: after which ends.
    """

    cron: str
    zone: str
    command: tuple[str, ...]
    folder: Path
    name: str | None = None
    channel: str | None = None
    when: DeliverWhen = DeliverWhen.ALWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A schedule, when it is due next, and what is known of the times before.

    Attributes:
        next_at: None if it never is due again.
        past: the newest first.
    """

    schedule: Schedule
    next_at: datetime | None
    past: tuple[Occurrence, ...] = ()


def add_schedule(request: ScheduleRequest, config: Config, listener: Listener) -> Planned:
    """Keep a new schedule.

    Raises:
        ConfigError: the settings have no such channel.
        InputError: its times, zone, command or name cannot be, or another one has its name.
        StoreError: the database cannot be written.
    """
    from advisor.store import schedules as kept

    command = schedulable(request.command)
    check_words(request.command)
    if request.name is not None:
        check_name(request.name)
    if request.channel is None and request.when is not DeliverWhen.ALWAYS:
        when, channel = listener.name_of("when"), listener.name_of("channel")
        raise InputError(f"{when} {request.when} says when the output is sent: say to whom with {channel}.")
    own = () if request.channel is None else (request.channel,)
    check_channels((*own, *channels_in(request.command)), config)
    with opened(config) as store:
        names = [schedule.name for schedule in kept.schedules(store)]
        schedule = _schedule(request, request.name or name_for(command, names))
        planned = Planned(schedule=schedule, next_at=next_after(schedule, schedule.added_at))
        if not kept.add_schedule(store, schedule):
            raise InputError(
                f"there is a schedule {schedule.name!r} already: choose another name, or remove it first"
                f" (advisor schedule remove {schedule.name})."
            )
    return planned


def _schedule(request: ScheduleRequest, name: str) -> Schedule:
    at = now()
    return Schedule(
        id=uuid.uuid4().hex,
        name=name,
        cron=" ".join(request.cron.split()),
        zone=request.zone,
        command=request.command,
        folder=str(request.folder.absolute()),
        channel=request.channel,
        when=request.when,
        added_at=at,
        settled_until=at,
    )


def planned_schedules(config: Config) -> tuple[Planned, ...]:
    """All schedules by name, each with its last occurrence; none where there is no database yet.

    Raises:
        StoreError: the database cannot be read.
    """
    with _existing(config) as store:
        return tuple(_planned(store, schedule, most=1) for schedule in _schedules(store))


def planned_schedule(name: str, config: Config) -> Planned:
    """One schedule with its last occurrences.

    Raises:
        InputError: there is none of this name.
        StoreError: the database cannot be read.
    """
    with _existing(config) as store:
        return _planned(store, _named(name, _schedules(store)), most=_MOST_SHOWN)


def remove_schedule(name: str, config: Config) -> None:
    """Forget a schedule and its occurrences.

    Raises:
        InputError: there is none of this name.
        StoreError: the database cannot be written.
    """
    from advisor.store import schedules as kept

    with _existing(config) as store:
        _named(name, _schedules(store))
        assert store is not None, "it holds a schedule of this name"  # noqa: S101
        kept.remove_schedule(store, name)


@contextmanager
def _existing(config: Config) -> Iterator[Store | None]:
    from advisor.store.database import open_store

    store = open_store(config.settings.store.url, must_exist=True)
    if store is None:
        yield None
        return
    with store:
        yield store


def _schedules(store: Store | None) -> tuple[Schedule, ...]:
    from advisor.store import schedules as kept

    return () if store is None else kept.schedules(store)


def _named(name: str, known: Sequence[Schedule]) -> Schedule:
    for schedule in known:
        if schedule.name == name:
            return schedule
    if not known:
        raise InputError(
            f"there is no schedule {name!r}, nor any other: `advisor schedule add` makes one, see its --help."
        )
    names = [schedule.name for schedule in known]
    hint = did_you_mean(name, names) or " `advisor schedule list` shows all."
    raise InputError(f"there is no schedule {name!r}.{hint}")


def _planned(store: Store | None, schedule: Schedule, *, most: int) -> Planned:
    from advisor.store.occurrences import occurrences

    past = () if store is None else occurrences(store, schedule.id, most=most)
    return Planned(schedule=schedule, next_at=next_after(schedule, now()), past=past)
