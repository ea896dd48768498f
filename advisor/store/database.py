"""Where the database is, and how it is opened: SQLite for one person, PostgreSQL for a team.

Importing this file needs the standard library alone, so that asking whether there is a database costs
nothing. Its tables are read and written by ``pulls``, ``ledger``, ``schedules`` and ``outbox``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.store.handle import Store

SQLITE = "sqlite:///"


def default_path() -> Path:
    """This user's SQLite file: ``~/.local/share/advisor/advisor.db``, or where the platform keeps such."""
    import platformdirs

    return platformdirs.user_data_path("advisor") / "advisor.db"


def open_store(url: str | None) -> Store:
    """Open the database, made or brought to the newest schema where that is needed.

    Args:
        url: ``sqlite:///PATH`` or ``postgresql://user@host/database``; None is the file of this user.

    Raises:
        ConfigError: the URL is of another kind, or misspelt.
        StoreError: it cannot be reached, read or written, is no database of ours or of a newer version.
    """
    from advisor.store.transactions import open_file, open_server

    path = _sqlite_path(url)
    return open_file(path) if path is not None else open_server(str(url))


@contextmanager
def existing_store(url: str | None) -> Iterator[Store | None]:
    """The database as long as it is needed; None where the SQLite file is not there: none is made.

    Errors are those of `open_store`.
    """
    path = _sqlite_path(url)
    if path is not None and not path.exists():
        yield None
        return
    with open_store(url) as store:
        yield store


def folder_of(url: str | None) -> Path:
    """Where files lie that belong to a database: beside it, or with this user's data for one on a server."""
    return (_sqlite_path(url) or default_path()).parent


def _sqlite_path(url: str | None) -> Path | None:
    if url is None:
        return default_path()
    if not url.startswith(SQLITE) or len(url) == len(SQLITE):
        return None
    from advisor.formats.user_files import at_home

    return at_home(url.removeprefix(SQLITE))
