"""Schedules in the database."""

from __future__ import annotations

import dataclasses

from sqlalchemy import delete, select

from advisor.core.values import Schedule
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, reading, writing

_SCHEDULES = schema.schedules.c


def add_schedule(store: Store, schedule: Schedule) -> bool:
    """Keep a new schedule; False if another one has its name.

    Raises:
        StoreError: the database cannot be written.
    """
    values = {item.name: getattr(schedule, item.name) for item in dataclasses.fields(schedule)}
    with writing(store) as connection:
        taken = select(_SCHEDULES.id).where(_SCHEDULES.name == schedule.name)
        if connection.execute(taken).one_or_none() is not None:
            return False
        connection.execute(insert_into(connection, schema.schedules).values(values))
        return True


def schedules(store: Store) -> tuple[Schedule, ...]:
    """All schedules by name.

    Raises:
        StoreError: the database cannot be read.
    """
    with reading(store) as connection:
        rows = connection.execute(select(schema.schedules).order_by(_SCHEDULES.name))
        return tuple(Schedule(**row) for row in rows.mappings())


def remove_schedule(store: Store, name: str) -> bool:
    """Forget a schedule and what is known of its occurrences; False if there is none of this name.

    Raises:
        StoreError: the database cannot be written.
    """
    with writing(store) as connection:
        # Not by rowcount: a database may count the occurrences, too.
        known = select(_SCHEDULES.id).where(_SCHEDULES.name == name)
        if connection.execute(known).one_or_none() is None:
            return False
        connection.execute(delete(schema.schedules).where(_SCHEDULES.name == name))
        return True
