"""From a path or URL to an open ``Store``, with the tables of this version."""

import os
import re
import reprlib
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, Connection, Select, column, insert, inspect, make_url, select, text, update
from sqlalchemy.exc import ArgumentError

from advisor.core.errors import ConfigError, StoreError
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import make_engine, reading, writing

FORMS = "sqlite:///PATH or postgresql://user@host/database"
SERVERS = {"postgresql", "postgres", "postgresql+psycopg"}
_VERSION = schema.alembic_version.c.version_num


def open_file(path: Path) -> Store:
    """Open an SQLite file; a missing one appears whole or not at all, however many processes want it.

    Raises:
        StoreError: it cannot be made, read or written, is no database of ours or of a newer version.
    """
    try:
        if not path.exists():
            _make_file(path)
    except OSError as error:
        raise StoreError(
            f"cannot make the database {path}: {error.strerror or error}."
            f" Allow writing there, or name another place in store.url: {FORMS}."
        ) from error
    return _opened(_file_url(path), str(path))


def open_server(url: str) -> Store:
    """Open a PostgreSQL database.

    Raises:
        ConfigError: the URL is of another kind, or misspelt.
        StoreError: it cannot be reached, read or written, is no database of ours or of a newer version.
    """
    parsed = _server_url(url)
    try:
        return _opened(parsed, _shown(parsed))
    except ImportError as error:
        raise StoreError(
            f"the database {_shown(parsed)} needs psycopg, which cannot be imported: {error}."
            " pip install 'gpu-advisor[postgresql]' in advisor's own environment."
        ) from error


def _make_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        whole = Path(folder) / path.name
        # SQLite gives its journals the mode of the file.
        whole.touch(mode=0o600, exist_ok=False)
        with _opened(_file_url(whole), str(path)) as store:
            _gather(store)
        # If another process was first, its file may hold something already.
        with suppress(FileExistsError):
            os.link(whole, path)


def _gather(store: Store) -> None:
    """Bring what was written into the file itself; its journal goes with the folder.

    Closing does so, too, but does not report that the disk was full.
    """
    with reading(store) as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _opened(url: URL, place: str) -> Store:
    store = Store(engine=make_engine(url), place=place)
    try:
        _bring_to_newest(store)
    except BaseException:
        store.engine.dispose()
        raise
    return store


def _bring_to_newest(store: Store) -> None:
    """Make the tables, or change those of the version before; of several processes one does it."""
    with reading(store) as connection:
        if _version(connection, store.place) == schema.VERSION:
            return
    with writing(store) as connection:
        version = _version(connection, store.place)
        if version is None:
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.alembic_version).values(version_num=schema.VERSION))
        elif version != schema.VERSION:
            for statement in schema.UPGRADES[version]:
                connection.execute(text(statement))
            connection.execute(update(schema.alembic_version).values(version_num=schema.VERSION))


def _version(connection: Connection, place: str) -> str | None:
    """The database's version, this one or one that can be upgraded; None if it is empty."""
    # In one look: another process may make the tables at this moment.
    names = inspect(connection).get_table_names()
    if not names:
        return None
    if schema.alembic_version.name not in names:
        raise StoreError(
            f"the database {place} holds another program's tables: name an empty one in store.url,"
            " or a file that is not there yet."
        )
    # Without its type: SQLite keeps whatever was written.
    versions: Select[object] = select(column("version_num")).select_from(schema.alembic_version)
    rows: Sequence[object] = connection.execute(versions).scalars().all()
    if not rows:
        return None
    if len(rows) == 1 and (rows[0] == schema.VERSION or rows[0] in schema.UPGRADES):
        return str(rows[0])
    shown = ", ".join(reprlib.repr(version) for version in rows[:3])
    if len(rows) == 1 and rows[0] in schema.BEFORE_RELEASES:
        raise StoreError(
            f"the database {place} has version {shown}, made before the first release: open it once with"
            f" gpu-advisor of commit {schema.LAST_TO_READ_THEM}, which upgrades it and keeps its receipts, or"
            " name another database in store.url."
        )
    raise StoreError(
        f"the database {place} has version {shown}, this advisor knows {schema.VERSION!r} and older: update"
        " gpu-advisor, or name another database in store.url."
    )


def _file_url(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def _server_url(url: str) -> URL:
    scheme = re.match(r"(\w[\w+.-]*)://", url)
    if scheme is None or scheme[1] not in SERVERS:
        beginning = f" begins with {scheme[1]!r}" if scheme else " is no URL"
        raise ConfigError(f"the setting 'store.url'{beginning}: it may be {FORMS}.")
    try:
        parsed = make_url(url).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        # Without its cause, which may hold the password.
        raise ConfigError(f"the setting 'store.url' cannot be read: write it as {FORMS}.") from None
    if "@" in (parsed.host or ""):
        raise ConfigError("the setting 'store.url' has a second '@': write %40 for one within the password.")
    return parsed


def _shown(url: URL) -> str:
    """What messages show of a URL: neither its password nor its options, which may hold one too."""
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    return shown.render_as_string()
