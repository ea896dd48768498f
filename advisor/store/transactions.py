"""Connections to the database, its two kinds of transactions, and its errors in words.

There is one writer at a time, on SQLite by ``BEGIN IMMEDIATE`` and on PostgreSQL by an advisory lock. So what
a writer has read stays true until it commits, and writers cannot wait for each other in a circle. Readers
never wait. Writing takes a second or so a few times an hour; waiting for it is cheaper than conflicts.
"""

from __future__ import annotations

import math
import os
import re
import reprlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError, StatementError

from advisor.core.errors import ConfigError, StoreError
from advisor.store import schema
from advisor.store.handle import Store

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.engine.interfaces import DBAPIConnection

_Made = TypeVar("_Made")

WAIT_S = 60
"""How long a writer waits for another one, where there is no hurry."""
CONNECT_S = 10
_hurry_s: ContextVar[float] = ContextVar("_hurry_s", default=math.inf)
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


def make_engine(url: sa.URL) -> sa.Engine:
    """An engine whose connections follow the rules above; it connects when it is first used."""
    if url.get_backend_name() != "sqlite":
        # libpq takes whole seconds, and 1 for 2.
        wait_s = max(2, int(min(CONNECT_S, _hurry_s.get())))
        limits = {} if "connect_timeout" in url.query else {"connect_timeout": wait_s}
        return sa.create_engine(url, hide_parameters=True, pool_pre_ping=True, connect_args=limits)
    # The driver's own transactions would begin late and without IMMEDIATE.
    arguments = {"timeout": min(WAIT_S, _hurry_s.get()), "isolation_level": None}
    engine = sa.create_engine(url, hide_parameters=True, connect_args=arguments)

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: DBAPIConnection, _record: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def reading(store: Store) -> Iterator[sa.Connection]:
    """What others have committed, and nothing of what they are writing."""
    with explained(store), store.engine.connect() as connection:
        yield connection


def selected(
    store: Store, wanted: sa.Executable, made_of: Callable[[sa.RowMapping], _Made]
) -> tuple[_Made, ...]:
    """What a query finds, each row made into a value."""
    with reading(store) as connection:
        return tuple(map(made_of, connection.execute(wanted).mappings()))


@contextmanager
def writing(store: Store) -> Iterator[sa.Connection]:
    """All or nothing: committed at the end, undone if anything is raised or the process dies.

    Raises StoreError: the database cannot be reached or written, or another writer takes too long.
    """
    with explained(store), store.engine.connect() as connection:
        connection.execution_options(**{_WRITES: True})
        with connection.begin():
            if connection.dialect.name == "postgresql":
                wait_ms = int(min(WAIT_S, _hurry_s.get()) * 1000)
                connection.execute(sa.text(f"SET LOCAL lock_timeout = '{wait_ms}ms'"))
                # A writer that lost its network must not keep the others out.
                connection.execute(sa.text(f"SET LOCAL idle_in_transaction_session_timeout = '{WAIT_S}s'"))
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection


def insert_into(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that takes an ON CONFLICT: both databases have it, SQLAlchemy in their own dialects."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


@contextmanager
def explained(store: Store) -> Iterator[None]:
    """Raise every error of the database as a ``StoreError``, without passwords.

    Raises StoreError: names the database, the error and what to do.
    """
    try:
        yield
    except DBAPIError as error:
        trouble = " ".join(str(error.orig).split()).rstrip(".")
        if password := store.engine.url.password:
            trouble = trouble.replace(str(password), "***")
        code = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None)
        # Of what stops a connection the driver gives no code.
        hints = (hint for beginning, hint in HINTS.items() if code and code.startswith(beginning))
        hint = next(hints, OTHERWISE if code else UNREACHABLE)
        raise StoreError(f"cannot use the database {store.place}: {trouble}. {hint}") from error
    except (SQLAlchemyError, ValueError) as error:
        cause = error.orig if isinstance(error, StatementError) and error.orig else error
        raise StoreError(
            f"the database {store.place} cannot take or give this: {cause}. {OTHERWISE}"
        ) from error


FORMS = "sqlite:///PATH or postgresql://user@host/database"
SERVERS = {"postgresql", "postgres", "postgresql+psycopg"}
_VERSION = schema.alembic_version.c.version_num


def open_file(path: Path) -> Store:
    """Open an SQLite file; a missing one appears whole or not at all, however many processes want it.

    Raises StoreError: it cannot be made, read or written, is no database of ours or of a newer version.
    """
    try:
        if not path.exists():
            _make_file(path)
    except OSError as error:
        raise StoreError(
            f"cannot make the database {path}: {error.strerror or error}."
            f" Allow writing there, or name another place in store.url: {FORMS}."
        ) from error
    return _opened(sa.URL.create("sqlite", database=str(path)), str(path))


def open_server(url: str) -> Store:
    """Open a PostgreSQL database.

    Raises:
        ConfigError: the URL is of another kind, or misspelt.
        StoreError: it cannot be reached, read or written, is no database of ours or of a newer version.
    """
    parsed = _server_url(url)
    # Neither its password nor its options, which may hold one too.
    shown = sa.URL.create("postgresql", parsed.username, None, parsed.host, parsed.port, parsed.database)
    place = shown.render_as_string()
    try:
        return _opened(parsed, place)
    except ImportError as error:
        raise StoreError(
            f"the database {place} needs psycopg, which cannot be imported: {error}."
            " pip install 'gpu-advisor[postgresql]' in advisor's own environment."
        ) from error


def _make_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        whole = Path(folder) / path.name
        # SQLite gives its journals the mode of the file.
        whole.touch(mode=0o600, exist_ok=False)
        # Bring what was written into the file itself: its journal goes with the folder. Closing does so, too,
        # and does not report that the disk was full.
        url = sa.URL.create("sqlite", database=str(whole))
        with _opened(url, str(path)) as store, reading(store) as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        # If another process was first, its file may hold something already.
        with suppress(FileExistsError):
            os.link(whole, path)


def _opened(url: sa.URL, place: str) -> Store:
    """With the tables made, or those of an older version changed; of several processes one does it."""
    store = Store(engine=make_engine(url), place=place)
    try:
        with reading(store) as connection:
            if _version(connection, place) == schema.VERSION:
                return store
        with writing(store) as connection:
            version = _version(connection, place)
            if version is None:
                schema.metadata.create_all(connection)
                connection.execute(sa.insert(schema.alembic_version).values(version_num=schema.VERSION))
            elif version != schema.VERSION:
                for statement in schema.UPGRADES[version]:
                    connection.execute(sa.text(statement))
                connection.execute(sa.update(schema.alembic_version).values(version_num=schema.VERSION))
    except BaseException:
        store.engine.dispose()
        raise
    return store


def _version(connection: sa.Connection, place: str) -> str | None:
    """The database's version, this one or one that can be upgraded; None if it is empty."""
    # In one look: another process may make the tables at this moment.
    names = sa.inspect(connection).get_table_names()
    if not names:
        return None
    if schema.alembic_version.name not in names:
        raise StoreError(
            f"the database {place} holds another program's tables: name an empty one in store.url,"
            " or a file that is not there yet."
        )
    # Without its type: SQLite keeps whatever was written.
    versions: sa.Select[object] = sa.select(sa.column("version_num")).select_from(schema.alembic_version)
    rows: Sequence[object] = connection.execute(versions).scalars().all()
    if not rows:
        return None
    if len(rows) == 1 and (rows[0] == schema.VERSION or rows[0] in schema.UPGRADES):
        return str(rows[0])
    has = f"the database {place} has version {', '.join(reprlib.repr(version) for version in rows[:3])}"
    if len(rows) == 1 and rows[0] in schema.BEFORE_RELEASES:
        raise StoreError(
            f"{has}, made before the first release: open it once with gpu-advisor of commit"
            f" {schema.LAST_TO_READ_THEM}, which upgrades it and keeps its receipts, or name another database"
            " in store.url."
        )
    raise StoreError(
        f"{has}, this advisor knows {schema.VERSION!r} and older: update gpu-advisor, or name another"
        " database in store.url."
    )


def _server_url(url: str) -> sa.URL:
    scheme = re.match(r"(\w[\w+.-]*)://", url)
    if scheme is None or scheme[1] not in SERVERS:
        beginning = f" begins with {scheme[1]!r}" if scheme else " is no URL"
        raise ConfigError(f"the setting 'store.url'{beginning}: it may be {FORMS}.")
    try:
        parsed = sa.make_url(url).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        # Without its cause, which may hold the password.
        raise ConfigError(f"the setting 'store.url' cannot be read: write it as {FORMS}.") from None
    if "@" in (parsed.host or ""):
        raise ConfigError("the setting 'store.url' has a second '@': write %40 for one within the password.")
    return parsed
