"""Schedules and the times at which they were due, in the database.

A process that runs a schedule holds its lock (`schedule_lock`) from before it is noted as running until its
end is noted. So what is noted as running while the lock is free was interrupted. Each attempt has a number,
and its end counts only as long as no later attempt has begun: a machine whose lock was lost changes nothing.
"""

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Select, delete, select, update

from advisor.core.values import Occurrence, OccurrenceState, Schedule
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.locks import Lock, lock
from advisor.store.transactions import insert_into, selected, writing

_SCHEDULES = schema.schedules.c
_OCCURRENCES = schema.occurrences.c
_IS_UNFINISHED = _OCCURRENCES.state.in_((OccurrenceState.CLAIMED, OccurrenceState.RUNNING))
_KEY = ("schedule_id", "due_at", "attempts")


def schedule_lock(store: Store, schedule: Schedule, holder: str) -> Lock:
    """Take the lock of a schedule: its times never overlap. Raises LockedError: one of its times runs."""
    return lock(store, f"schedule {schedule.id}", holder)


def add_schedule(store: Store, schedule: Schedule) -> bool:
    """Keep a new schedule; False if another one has its name."""
    with writing(store) as connection:
        taken = select(_SCHEDULES.id).where(_SCHEDULES.name == schedule.name)
        if connection.execute(taken).one_or_none() is not None:
            return False
        connection.execute(insert_into(connection, schema.schedules).values(_values(schedule)))
        return True


def schedules(store: Store) -> tuple[Schedule, ...]:
    """All schedules by name."""
    wanted = select(schema.schedules).order_by(_SCHEDULES.name)
    return selected(store, wanted, lambda row: Schedule(**row))


def remove_schedule(store: Store, name: str) -> bool:
    """Forget a schedule and what is known of its times; False if there is none of this name."""
    with writing(store) as connection:
        # Not by rowcount: a database may count the occurrences, too.
        known = select(_SCHEDULES.id).where(_SCHEDULES.name == name)
        if connection.execute(known).one_or_none() is None:
            return False
        connection.execute(delete(schema.schedules).where(_SCHEDULES.name == name))
        return True


def settle(
    store: Store,
    schedule: Schedule,
    running: Occurrence | None,
    missed: Sequence[datetime],
    *,
    until: datetime,
    forget_before: datetime,
) -> bool:
    """Note what became due until a moment: the time that runs now, and those that were missed.

    Args:
        schedule: as it was read, its lock held: if anything was settled since, nothing happens.
        running: the first attempt; None if all that became due is too old to run.
        missed: what will never run.
        until: up to when all is noted then.
        forget_before: what was due before this moment and has ended is dropped.

    Returns False if nothing was noted: another service was first, or an earlier time is not finished.
    """
    own, state = _OCCURRENCES.schedule_id == schedule.id, OccurrenceState.MISSED
    as_read = (_SCHEDULES.id == schedule.id) & (_SCHEDULES.settled_until == schedule.settled_until)
    settled = update(schema.schedules).where(as_read).values(settled_until=until)
    new = [Occurrence(schedule_id=schedule.id, due_at=moment, state=state) for moment in missed]
    with writing(store) as connection:
        is_busy = connection.execute(select(_OCCURRENCES.due_at).where(own, _IS_UNFINISHED)).first()
        if is_busy or not connection.execute(settled).rowcount:
            return False
        is_old = ~_IS_UNFINISHED & (_OCCURRENCES.due_at < forget_before)
        connection.execute(delete(schema.occurrences).where(own & is_old))
        for occurrence in new if running is None else (running, *new):
            row = insert_into(connection, schema.occurrences).values(_values(occurrence))
            # A person may have asked for it at this very moment.
            connection.execute(row.on_conflict_do_nothing())
    return True


def begin_occurrence(store: Store, running: Occurrence) -> None:
    """Note an attempt that begins: of a time that was begun before, or that a person asks for."""
    values = _values(running)
    with writing(store) as connection:
        begun = insert_into(connection, schema.occurrences).values(values)
        again = {name: values[name] for name in ("state", "holder", "started_at", "attempts", "expires_at")}
        connection.execute(begun.on_conflict_do_update(index_elements=_KEY[:2], set_=again))


def change_occurrence(store: Store, occurrence: Occurrence) -> bool:
    """Note how an attempt ended; False if it ended before, a later one has begun, or it was removed."""
    values = _values(occurrence)
    same = [_OCCURRENCES[name] == values.pop(name) for name in _KEY]
    with writing(store) as connection:
        changed = update(schema.occurrences).where(*same, _IS_UNFINISHED).values(values)
        return bool(connection.execute(changed).rowcount)


def unfinished_occurrences(store: Store) -> tuple[Occurrence, ...]:
    """All that run, were interrupted or wait for another attempt, the oldest first."""
    return _read(store, select(schema.occurrences).where(_IS_UNFINISHED).order_by(_OCCURRENCES.due_at))


def occurrences(store: Store, schedule_id: str, *, most: int) -> tuple[Occurrence, ...]:
    """The last occurrences of a schedule, the newest first."""
    wanted = select(schema.occurrences).where(_OCCURRENCES.schedule_id == schedule_id)
    return _read(store, wanted.order_by(_OCCURRENCES.due_at.desc()).limit(most))


def last_delivered(store: Store, schedule_id: str) -> Occurrence | None:
    """The newest occurrence whose output was delivered, or was not sent because `when` says so."""
    wanted = select(schema.occurrences).where(_OCCURRENCES.schedule_id == schedule_id)
    wanted = wanted.where(_OCCURRENCES.delivery != "").order_by(_OCCURRENCES.due_at.desc())
    return next(iter(_read(store, wanted.limit(1))), None)


def _read(store: Store, wanted: Select[tuple[object, ...]]) -> tuple[Occurrence, ...]:
    return selected(store, wanted, lambda row: Occurrence(**row))


def _values(entry: Schedule | Occurrence) -> dict[str, object]:
    return {item.name: getattr(entry, item.name) for item in dataclasses.fields(entry)}
