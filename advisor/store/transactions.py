"""Connections to the database, its two kinds of transactions, and its errors in words.

There is one writer at a time, on SQLite by ``BEGIN IMMEDIATE`` and on PostgreSQL by an advisory lock. So what
a writer has read stays true until it commits, and writers cannot wait for each other in a circle. Readers
never wait. Writing takes a second or so a few times an hour; waiting for it is cheaper than conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from advisor.core.errors import StoreError
from advisor.store.handle import Store

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.engine.interfaces import DBAPIConnection


WAIT_S = 60
"""How long a writer waits for another one, where nobody is in a hurry."""
CONNECT_S = 10
_hurry_s: ContextVar[float | None] = ContextVar("_hurry_s", default=None)
_WRITES = "advisor_writes"
_LOCK = 0x6164_7669_736F_72  # "advisor": the number that all our writers lock on a server

NOTHING_CHANGED = "what it held before is intact"
# By the beginning of SQLite's name of the error, or of PostgreSQL's SQLSTATE.
HINTS = {
    "SQLITE_FULL": f"The disk is full: free some space and try again; {NOTHING_CHANGED}.",
    "SQLITE_IOERR": f"Look after the disk and its space, and try again; {NOTHING_CHANGED}.",
    "SQLITE_BUSY": "Another process writes to it for very long: try again when it has ended.",
    "SQLITE_READONLY": "Allow writing to the file and its folder, or name another place in store.url.",
    "SQLITE_CANTOPEN": "Allow reading and writing the file and its folder, or name another one in store.url.",
    "SQLITE_NOTADB": "Name another file in store.url, or move this one away and let a new one be made.",
    "SQLITE_CORRUPT": "Restore a backup, or move the file away and let a new one be made.",
    "42501": "Ask the database's owner for the right to do this.",
    "53100": f"The server's disk is full: free some space and try again; {NOTHING_CHANGED}.",
    "55P03": "Another process writes to it for very long: try again when it has ended.",
}
# The driver gives no code for what stops a connection.
UNREACHABLE = (
    "Check store.url, the password in ~/.pgpass, and that the server runs and lets this machine in; createdb"
    " makes a database that does not exist."
)
OTHERWISE = "See docs/store.md for how the database is kept."


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Within this, connections and writers wait no longer than that for others."""
    token = _hurry_s.set(seconds)
    try:
        yield
    finally:
        _hurry_s.reset(token)


def _wait_s(patience_s: float) -> float:
    hurry_s = _hurry_s.get()
    return patience_s if hurry_s is None else min(patience_s, hurry_s)


def make_engine(url: URL) -> Engine:
    """An engine whose connections follow the rules above; it connects when it is first used."""
    if url.get_backend_name() != "sqlite":
        # libpq takes whole seconds, and 1 for 2.
        wait_s = max(2, int(_wait_s(CONNECT_S)))
        limits = {} if "connect_timeout" in url.query else {"connect_timeout": wait_s}
        return create_engine(url, hide_parameters=True, pool_pre_ping=True, connect_args=limits)
    # The driver's own transactions would begin late and without IMMEDIATE.
    arguments = {"timeout": _wait_s(WAIT_S), "isolation_level": None}
    engine = create_engine(url, hide_parameters=True, connect_args=arguments)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextmanager
def reading(store: Store) -> Iterator[Connection]:
    """What others have committed, and nothing of what they are writing.

    Raises:
        StoreError: the database cannot be reached or read.
    """
    with explained(store), store.engine.connect() as connection:
        yield connection


@contextmanager
def writing(store: Store) -> Iterator[Connection]:
    """All or nothing: committed at the end, undone if anything is raised or the process dies.

    Raises:
        StoreError: the database cannot be reached or written, or another writer takes too long.
    """
    with explained(store), store.engine.connect() as connection:
        connection.execution_options(**{_WRITES: True})
        with connection.begin():
            if connection.dialect.name == "postgresql":
                wait_ms = int(_wait_s(WAIT_S) * 1000)
                connection.execute(text(f"SET LOCAL lock_timeout = '{wait_ms}ms'"))
                # A writer that lost its network must not keep the others out.
                connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{WAIT_S}s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection


def insert_into(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that takes an ON CONFLICT: both databases have it, SQLAlchemy in their own dialects."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def _set_up_sqlite(connection: DBAPIConnection, _record: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def explained(store: Store) -> Iterator[None]:
    """Raise every error of the database as a ``StoreError``, without passwords.

    Raises:
        StoreError: names the database, the error and what to do.
    """
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_message(store, error)) from error
    except (SQLAlchemyError, ValueError) as error:
        cause = error.orig if isinstance(error, StatementError) and error.orig else error
        raise StoreError(
            f"the database {store.place} cannot take or give this: {cause}. {OTHERWISE}"
        ) from error


def _message(store: Store, error: DBAPIError) -> str:
    trouble = " ".join(str(error.orig).split()).rstrip(".")
    password = store.engine.url.password
    if password:
        trouble = trouble.replace(str(password), "***")
    return f"cannot use the database {store.place}: {trouble}. {_hint(error)}"


def _hint(error: DBAPIError) -> str:
    code = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None)
    if code is None:
        return UNREACHABLE
    return next((hint for beginning, hint in HINTS.items() if code.startswith(beginning)), OTHERWISE)
