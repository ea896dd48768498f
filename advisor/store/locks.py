"""Locks that one process holds at a time, whichever machine of those that share a database it runs on.

On SQLite a lock is an ``flock`` on a file beside the database; on PostgreSQL it is an advisory lock of an
open transaction. Both are free at once when their process dies, so no clock decides who may go on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from advisor.core.errors import LockedError, StoreError
from advisor.store.handle import Store
from advisor.store.transactions import explained

# A machine that vanishes without a word is noticed within a minute, not within two hours.
_ON_SERVER = """
SELECT set_config('idle_in_transaction_session_timeout', '0', true),
    set_config('tcp_keepalives_idle', '20', true), set_config('tcp_keepalives_interval', '10', true),
    set_config('tcp_keepalives_count', '4', true), set_config('application_name', :holder, true)
"""
_HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) + objid::bigint = :number
"""
_MOST_OF_A_HOLDER = 63  # bytes of an application_name


class Lock(AbstractContextManager["Lock", None]):
    """A lock that this process has; used in a ``with`` statement, it is released at the end."""

    def __init__(self, by: int | Connection) -> None:
        self._by = by

    def is_held(self) -> bool:
        """Whether it is still ours: the connection to a server may have ended."""
        with suppress(SQLAlchemyError):
            if isinstance(self._by, Connection):
                self._by.execute(text("SELECT 1"))
            return True
        return False

    def release(self) -> None:
        """Let others have it."""
        if isinstance(self._by, int):
            os.close(self._by)
            return
        with suppress(SQLAlchemyError):  # the server lets go of it with the connection
            self._by.close()

    def __exit__(self, *_ended: object) -> None:
        self.release()


def lock(store: Store, name: str, holder: str) -> Lock:
    """Take a lock, without waiting for it.

    Args:
        name: what it is for, such as ``"refresh of prices"``.
        holder: who takes it, for the others to read: user, machine and process.

    Raises:
        LockedError: another process has it, or this one has already.
        StoreError: the database or its folder cannot be written.
    """
    digest = hashlib.sha256(name.encode()).digest()
    if store.engine.dialect.name == "sqlite":
        path = Path(f"{store.engine.url.database}-locks", digest.hex()[:16])
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"cannot lock the {name}: {path}: {error.strerror or error}. Allow writing to this folder."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(handle, 4 * _MOST_OF_A_HOLDER, 0).decode(errors="replace")
            os.close(handle)
            raise _taken(name, other) from None
        os.truncate(handle, 0)
        os.pwrite(handle, holder.encode(), 0)
        return Lock(handle)
    number = int.from_bytes(digest[:8]) >> 1
    with explained(store):
        connection = store.engine.connect()
        try:
            shown = holder.encode()[:_MOST_OF_A_HOLDER].decode(errors="ignore")
            connection.execute(text(_ON_SERVER), {"holder": shown})
            if connection.scalar(text("SELECT pg_try_advisory_xact_lock(:number)"), {"number": number}):
                return Lock(connection)
            raise _taken(name, connection.scalar(text(_HOLDER), {"number": number}) or "")
        except BaseException:
            connection.close()
            raise


def _taken(name: str, holder: str) -> LockedError:
    return LockedError(f"the {name} is locked by {holder or 'another process'}: wait until that has ended.")
