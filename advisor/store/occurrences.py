"""Who runs an occurrence of a schedule: one service at a time, across processes and machines.

A service claims an occurrence for a short while and claims it anew as long as it works on it. If it is
killed, the claim runs out, and another one begins again. Every write names the token of the claim: a service
that lost its claim, such as a laptop that slept, changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, select, update

from advisor.core.values import Occurrence, OccurrenceState, Schedule
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, reading, writing

_OCCURRENCES = schema.occurrences.c
_SCHEDULES = schema.schedules.c
_OF_THE_END = (
    "state",
    "ended_at",
    "exit_code",
    "recommended",
    "outcome",
    "delivery",
    "output_sha256",
    "output",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """Who claims, when, and for how long.

    Attributes:
        name: for people to read: user, machine and process.
        now: with a time zone. Machines that share a database must agree on the time within ``for_s``.
        for_s: seconds after which others may take over.
    """

    name: str
    now: datetime
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An occurrence that is ours as long as the database has our token.

    Attributes:
        attempts: how often its command was started before.
    """

    schedule: Schedule
    due_at: datetime
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    attempts: int = 0


def settle(
    store: Store,
    schedule: Schedule,
    claim: Claim | None,
    missed: Sequence[datetime],
    by: Claimant,
    *,
    forget_before: datetime,
) -> bool:
    """Claim what is due and note what was missed, all until now; False if another service was first.

    Args:
        store: what the services share.
        schedule: as it was read: if anything was settled since, nothing happens.
        claim: what is to run; None if all of it is too old.
        missed: what will never run.
        by: who claims.
        forget_before: what was due before this moment and has ended is dropped.

    Raises:
        StoreError: the database cannot be written.
    """
    with writing(store) as connection:
        if _is_busy(connection, schedule) or not _is_as_read(connection, schedule, by.now):
            return False
        ended = (_OCCURRENCES.schedule_id == schedule.id) & _OCCURRENCES.expires_at.is_(None)
        connection.execute(delete(schema.occurrences).where(ended & (_OCCURRENCES.due_at < forget_before)))
        if claim is not None:
            _insert(connection, schedule, claim.due_at, OccurrenceState.CLAIMED, **_held(claim.token, by))
        for moment in missed:
            _insert(connection, schedule, moment, OccurrenceState.MISSED)
    return True


def claim_now(store: Store, claim: Claim, by: Claimant) -> bool:
    """Claim an occurrence that a person asks for; False while another one of the schedule is in work.

    Raises:
        StoreError: the database cannot be written.
    """
    with writing(store) as connection:
        if _is_busy(connection, claim.schedule):
            return False
        _insert(connection, claim.schedule, claim.due_at, OccurrenceState.CLAIMED, **_held(claim.token, by))
    return True


def take_over(store: Store, schedules: Sequence[Schedule], by: Claimant) -> Claim | None:
    """The oldest occurrence whose service let its claim run out; None if there is none.

    Raises:
        StoreError: the database cannot be written.
    """
    known = {schedule.id: schedule for schedule in schedules}
    lost = select(schema.occurrences).where(_OCCURRENCES.expires_at <= by.now)
    lost = lost.where(_OCCURRENCES.schedule_id.in_(known)).order_by(_OCCURRENCES.due_at).limit(1)
    with reading(store) as connection:
        if connection.execute(lost).first() is None:
            return None
    with writing(store) as connection:
        row = connection.execute(lost).mappings().first()
        if row is None:
            return None
        schedule = known[row["schedule_id"]]
        claim = Claim(schedule=schedule, due_at=row["due_at"], attempts=row["attempts"])
        held = (_OCCURRENCES.schedule_id == schedule.id) & (_OCCURRENCES.due_at == claim.due_at)
        connection.execute(update(schema.occurrences).where(held).values(**_held(claim.token, by)))
        return claim


def begin(store: Store, claim: Claim, by: Claimant) -> bool:
    """Note that the command starts; False if the claim was lost.

    Raises:
        StoreError: the database cannot be written.
    """
    values = {"state": OccurrenceState.RUNNING, "started_at": by.now, "attempts": claim.attempts + 1}
    return _change(store, claim, expires_at=_expiry(by), **values)


def renew(store: Store, claim: Claim, by: Claimant) -> bool:
    """Keep a claim for a while longer; False if it was lost.

    Raises:
        StoreError: the database cannot be written.
    """
    return _change(store, claim, expires_at=_expiry(by))


def give_back(store: Store, claim: Claim, now: datetime) -> bool:
    """Let others take over at once; False if the claim was lost.

    Raises:
        StoreError: the database cannot be written.
    """
    return _change(store, claim, expires_at=now)


def postpone(store: Store, claim: Claim, until: datetime, outcome: str) -> bool:
    """Let nobody take over before a moment; False if the claim was lost.

    Args:
        store: what the services share.
        claim: ours.
        until: from when on it is run again.
        outcome: why, in a few words.

    Raises:
        StoreError: the database cannot be written.
    """
    return _change(store, claim, expires_at=until, state=OccurrenceState.CLAIMED, outcome=outcome)


def end(store: Store, claim: Claim, ended: Occurrence) -> bool:
    """Note how it ended; False if the claim was lost, and what was noted then stays.

    Raises:
        StoreError: the database cannot be written.
    """
    return _change(store, claim, expires_at=None, **{name: getattr(ended, name) for name in _OF_THE_END})


def occurrences(store: Store, schedule_id: str, *, most: int) -> tuple[Occurrence, ...]:
    """The last occurrences of a schedule, the newest first.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.occurrences).where(_OCCURRENCES.schedule_id == schedule_id)
    with reading(store) as connection:
        rows = connection.execute(wanted.order_by(_OCCURRENCES.due_at.desc()).limit(most))
        return tuple(map(_occurrence, rows.mappings()))


def occurrence_at(store: Store, schedule_id: str, due_at: datetime) -> Occurrence | None:
    """The occurrence of a schedule that was due at a moment.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.occurrences).where(_OCCURRENCES.schedule_id == schedule_id)
    with reading(store) as connection:
        row = connection.execute(wanted.where(_OCCURRENCES.due_at == due_at)).mappings().first()
        return None if row is None else _occurrence(row)


def last_delivered(store: Store, schedule_id: str) -> Occurrence | None:
    """The newest occurrence whose output reached whom it was for, or was kept from them on purpose.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.occurrences).where(_OCCURRENCES.schedule_id == schedule_id)
    wanted = wanted.where(_OCCURRENCES.delivery != "").order_by(_OCCURRENCES.due_at.desc())
    with reading(store) as connection:
        row = connection.execute(wanted.limit(1)).mappings().first()
        return None if row is None else _occurrence(row)


def _is_busy(connection: Connection, schedule: Schedule) -> bool:
    """Whether an occurrence of the schedule is in work: they never overlap."""
    wanted = select(_OCCURRENCES.due_at).where(_OCCURRENCES.schedule_id == schedule.id)
    # One that ran out is in work as well: it will be taken over.
    return connection.execute(wanted.where(_OCCURRENCES.expires_at.is_not(None))).first() is not None


def _is_as_read(connection: Connection, schedule: Schedule, now: datetime) -> bool:
    as_read = (_SCHEDULES.id == schedule.id) & (_SCHEDULES.settled_until == schedule.settled_until)
    settled = update(schema.schedules).where(as_read).values(settled_until=now)
    return bool(connection.execute(settled).rowcount)


def _insert(
    connection: Connection, schedule: Schedule, due_at: datetime, state: OccurrenceState, **values: object
) -> None:
    empty = {"holder": "", "token": "", "attempts": 0, "outcome": "", "delivery": "", "output": ""}
    row = {"schedule_id": schedule.id, "due_at": due_at, "state": state, **empty, **values}
    # A person may have asked for it at this very moment.
    connection.execute(insert_into(connection, schema.occurrences).values(row).on_conflict_do_nothing())


def _held(token: str, by: Claimant) -> dict[str, object]:
    return {"token": token, "holder": by.name, "expires_at": _expiry(by)}


def _expiry(by: Claimant) -> datetime:
    return by.now + timedelta(seconds=by.for_s)


def _change(store: Store, claim: Claim, **values: object) -> bool:
    with writing(store) as connection:
        changed = connection.execute(update(schema.occurrences).where(_ours(claim)).values(**values))
        return bool(changed.rowcount)


def _ours(claim: Claim) -> ColumnElement[bool]:
    return (
        (_OCCURRENCES.schedule_id == claim.schedule.id)
        & (_OCCURRENCES.due_at == claim.due_at)
        & (_OCCURRENCES.token == claim.token)
        & _OCCURRENCES.expires_at.is_not(None)
    )


def _occurrence(row: RowMapping) -> Occurrence:
    return Occurrence(**{name: value for name, value in row.items() if name != "token"})
