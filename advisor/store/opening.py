"""From a path or URL to an open ``Store``."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from advisor.core.errors import ConfigError, StoreError
from advisor.store.handle import Store
from advisor.store.transactions import make_engine, reading
from advisor.store.versions import bring_to_newest

FORMS = "sqlite:///PATH or postgresql://user@host/database"
SERVERS = {"postgresql", "postgres", "postgresql+psycopg"}


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

    Closing does so, too, but tells nobody that the disk was full.
    """
    with reading(store) as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _opened(url: URL, place: str) -> Store:
    store = Store(engine=make_engine(url), place=place)
    try:
        bring_to_newest(store)
    except BaseException:
        store.engine.dispose()
        raise
    return store


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
    """What may be told of a URL: neither its password nor its options, which may hold one too."""
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    return shown.render_as_string()
