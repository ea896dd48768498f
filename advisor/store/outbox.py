"""The outbox: no answer goes to a channel twice, even if a process dies in the middle.

::

    (nothing) --claim--> WAITING --begin--> SENDING --settle--> SENT | FAILED | PERHAPS
                            ^------postpone----'

WAITING is before the step that cannot be taken back, so the next process may send. A process that died
while SENDING may have sent: PERHAPS. Only a channel that drops repeats is then sent to again. Each change
asks for the claim's token: a process that lost its claim changes nothing and must not send.
"""

import os
import socket
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, Select, and_, select, update

from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, selected, writing

_DELIVERIES = schema.deliveries.c


class State(StrEnum):
    """How far a delivery came."""

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    PERHAPS = "perhaps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """An answer on its way to a channel, or there."""

    key: str
    """Of the answer; a channel gets each key once."""
    channel: str
    content_sha256: str
    """Of what was to be sent first under this key."""
    state: State
    attempts: int
    """That ended, well or not."""
    begun_at: datetime
    """When the key was first claimed."""
    changed_at: datetime
    """When the state was last entered."""
    error: str | None
    """Why it last went wrong, without secrets; None where nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a claim came to."""

    posted: Posted
    """As it now stands."""
    token: str | None
    """What shows that the delivery is ours; None if it is not to be sent by us."""
    is_resumed: bool = False
    """Whether an earlier process died, or was cut off, in the middle of sending it."""


class LostClaimError(Exception):
    """Another process took the delivery over: it must not be sent by this one."""


def claim(
    store: Store,
    key: str,
    channel: str,
    *,
    content_sha256: str,
    drops_repeats: bool,
    for_s: float,
    now: datetime,
) -> Claim:
    """Take a delivery over, unless it was sent, perhaps sent, or another process is at it.

    Args:
        drops_repeats: whether the channel gets an answer once however often it is sent there.
        for_s: seconds after which others may think us dead; longer than the sending can take.
        now: with a time zone.
    """
    token = uuid.uuid4().hex
    ours = {"token": token, "holder": _this_process(), "expires_at": now + timedelta(seconds=for_s)}
    with writing(store) as connection:
        row = connection.execute(_one(key, channel)).mappings().one_or_none()
        if row is None:
            values = {"content_sha256": content_sha256, "attempts": 0, "begun_at": now}
            _insert(connection, key, channel, {**values, **ours, "state": State.WAITING, "changed_at": now})
            return Claim(posted=_read(connection, key, channel), token=token)
        state, is_at_it = State(row["state"]), row["expires_at"] > now and not _is_dead(row["holder"])
        if state is State.SENT or (state in (State.WAITING, State.SENDING) and is_at_it):
            return Claim(posted=_posted(row), token=None)
        is_open = state in (State.SENDING, State.PERHAPS)
        if is_open and not drops_repeats:
            # Its token stays: should its process live after all, it may still say how it ended.
            if state is State.SENDING:
                _change(connection, key, channel, {"state": State.PERHAPS, "changed_at": now})
            return Claim(posted=_read(connection, key, channel), token=None)
        _change(connection, key, channel, {**ours, "state": State.WAITING, "changed_at": now})
        return Claim(posted=_read(connection, key, channel), token=token, is_resumed=is_open)


def begin(store: Store, held: Claim, *, now: datetime) -> None:
    """Say that the step follows which cannot be taken back.

    Raises LostClaimError: the delivery is no longer ours.
    """
    _move(store, held, {"state": State.SENDING, "changed_at": now})


def postpone(store: Store, held: Claim, *, error: str, attempts: int, now: datetime) -> None:
    """Say that nothing was sent, and that another attempt follows.

    Raises LostClaimError: the delivery is no longer ours.
    """
    _move(store, held, {"state": State.WAITING, "error": error, "attempts": attempts, "changed_at": now})


def settle(
    store: Store, held: Claim, state: State, *, error: str | None, attempts: int, now: datetime
) -> None:
    """Say how the sending ended.

    Raises LostClaimError: the delivery is no longer ours; what was written stays.
    """
    _move(store, held, {"state": state, "error": error, "attempts": attempts, "changed_at": now})


def last_posted(store: Store, channel: str) -> Posted | None:
    """What changed last of a channel's deliveries."""
    wanted = select(schema.deliveries).where(_DELIVERIES.channel == channel)
    wanted = wanted.order_by(_DELIVERIES.changed_at.desc()).limit(1)
    return next(iter(selected(store, wanted, _posted)), None)


def _move(store: Store, held: Claim, values: dict[str, object]) -> None:
    with writing(store) as connection:
        if not _change(connection, held.posted.key, held.posted.channel, values, token=held.token):
            raise LostClaimError


def _one(key: str, channel: str) -> Select[tuple[object, ...]]:
    return select(schema.deliveries).where(and_(_DELIVERIES.key == key, _DELIVERIES.channel == channel))


def _insert(connection: Connection, key: str, channel: str, values: dict[str, object]) -> None:
    connection.execute(insert_into(connection, schema.deliveries).values(key=key, channel=channel, **values))


def _change(
    connection: Connection, key: str, channel: str, values: dict[str, object], *, token: str | None = None
) -> bool:
    """Whether there was such a delivery, with this token if one is given."""
    which = and_(_DELIVERIES.key == key, _DELIVERIES.channel == channel)
    if token is not None:
        which = and_(which, _DELIVERIES.token == token)
    return connection.execute(update(schema.deliveries).where(which).values(values)).rowcount == 1


def _read(connection: Connection, key: str, channel: str) -> Posted:
    return _posted(connection.execute(_one(key, channel)).mappings().one())


def _posted(row: RowMapping) -> Posted:
    values = {name: row[name] for name in Posted.__dataclass_fields__}
    return Posted(**values | {"state": State(row["state"])})


def _this_process() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def _is_dead(holder: str) -> bool:
    """Whether a process of this machine surely runs no more; a new one of its number only makes us wait."""
    host, _, number = holder.rpartition("/")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's, or no number that the system knows
        return False
    return False
