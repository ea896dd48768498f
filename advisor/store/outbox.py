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
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import RowMapping, select, update

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

    A channel that ``drops_repeats`` gets an answer once however often it is sent there. After ``for_s``
    seconds, which is longer than the sending can take, others may think us dead.
    """
    token: str | None = uuid.uuid4().hex
    ours = {"token": token, "holder": f"{socket.gethostname()}/{os.getpid()}", "state": State.WAITING}
    values = {**ours, "changed_at": now, "expires_at": now + timedelta(seconds=for_s)}
    is_this = (_DELIVERIES.key == key) & (_DELIVERIES.channel == channel)
    one = select(schema.deliveries).where(is_this)
    is_open = False
    with writing(store) as connection:
        row = connection.execute(one).mappings().one_or_none()
        if row is None:
            first = {"key": key, "channel": channel, "content_sha256": content_sha256, "begun_at": now}
            new = insert_into(connection, schema.deliveries)
            connection.execute(new.values({**values, **first, "attempts": 0}))
        else:
            state, is_at_it = State(row["state"]), row["expires_at"] > now and not _is_dead(row["holder"])
            if state is State.SENT or (state in (State.WAITING, State.SENDING) and is_at_it):
                return Claim(posted=_posted(row), token=None)
            is_open = state in (State.SENDING, State.PERHAPS)
            if is_open and not drops_repeats:
                # Its token stays: should its process live after all, it may still say how it ended.
                token, is_open = None, False
                since = now if state is State.SENDING else row["changed_at"]
                values = {"state": State.PERHAPS, "changed_at": since}
            connection.execute(update(schema.deliveries).where(is_this).values(values))
        posted = _posted(connection.execute(one).mappings().one())
    return Claim(posted=posted, token=token, is_resumed=is_open)


def settle(store: Store, held: Claim, state: State, *, now: datetime, **ended: str | int | None) -> None:
    """Say how far the sending came, and of an attempt that ended its ``error`` and the ``attempts`` so far.

    SENDING says that the step follows which cannot be taken back, WAITING that nothing was sent and another
    attempt follows.

    Raises LostClaimError: the delivery is no longer ours; what was written stays.
    """
    own = (_DELIVERIES.key == held.posted.key) & (_DELIVERIES.channel == held.posted.channel)
    changed = update(schema.deliveries).where(own, _DELIVERIES.token == held.token)
    with writing(store) as connection:
        if not connection.execute(changed.values(state=state, changed_at=now, **ended)).rowcount:
            raise LostClaimError


def last_posted(store: Store, channel: str) -> Posted | None:
    """What changed last of a channel's deliveries."""
    wanted = select(schema.deliveries).where(_DELIVERIES.channel == channel)
    wanted = wanted.order_by(_DELIVERIES.changed_at.desc()).limit(1)
    return next(iter(selected(store, wanted, _posted)), None)


def _posted(row: RowMapping) -> Posted:
    values = {name: row[name] for name in Posted.__dataclass_fields__}
    return Posted(**values | {"state": State(row["state"])})


def _is_dead(holder: str) -> bool:
    """Whether a process of this machine surely runs no more; a new one of its number only makes us wait."""
    host, _, number = holder.rpartition("/")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    with suppress(PermissionError, OverflowError):  # another user's, or no number that the system knows
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
    return False
