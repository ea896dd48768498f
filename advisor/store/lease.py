"""Who may do what only one may do at a time, such as a refresh: across processes and machines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from advisor.core.errors import LeaseTakenError
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, writing

_LEASES = schema.leases.c


@contextmanager
def lease(store: Store, name: str, holder: str, *, for_s: float, now: datetime) -> Iterator[None]:
    """Hold a lease within the block.

    Args:
        store: what the others share.
        name: what it is for, such as ``"refresh"``.
        holder: who takes it, for the others to read: user, machine and process.
        for_s: seconds after which others may take it over, should we not come to give it back; longer than
            the work can take.
        now: with a time zone. Machines that share a database must agree on the time within ``for_s``.

    Raises:
        LeaseTakenError: another holds it: who, and since when.
        StoreError: the database cannot be written.
    """
    # A lease that ran out and was taken over is no longer ours to give back.
    token = uuid.uuid4().hex
    _take(store, name, holder, token, now, now + timedelta(seconds=for_s))
    try:
        yield
    finally:
        with writing(store) as connection:
            ours = (_LEASES.name == name) & (_LEASES.token == token)
            connection.execute(delete(schema.leases).where(ours))


def _take(store: Store, name: str, holder: str, token: str, now: datetime, until: datetime) -> None:
    values = {"token": token, "holder": holder, "taken_at": now, "expires_at": until}
    with writing(store) as connection:
        held = connection.execute(select(schema.leases).where(_LEASES.name == name)).one_or_none()
        if held is not None and held.expires_at > now:
            raise LeaseTakenError(
                f"{held.holder} has been at the {name} since {_told(held.taken_at)}: wait until it has ended."
                f" If it never does, others may begin after {_told(held.expires_at)}."
            )
        taken = insert_into(connection, schema.leases).values(name=name, **values)
        connection.execute(taken.on_conflict_do_update(index_elements=["name"], set_=values))


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
