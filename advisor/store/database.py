"""Where the database is, and how it is opened: SQLite for one person, PostgreSQL for a team.

Importing this file needs the standard library alone, so that asking whether there is a database costs
nothing. Its tables are read and written by ``pulls``, ``ledger``, ``schedules`` and ``outbox``.
"""

from pathlib import Path
from typing import Literal, overload

from advisor.store.handle import Store

SQLITE = "sqlite:///"


def default_path() -> Path:
    """This user's SQLite file: ``~/.local/share/advisor/advisor.db``, or where the platform keeps such."""
    import platformdirs

    return platformdirs.user_data_path("advisor") / "advisor.db"


@overload
def open_store(url: str | None, *, must_exist: Literal[False] = False) -> Store: ...


@overload
def open_store(url: str | None, *, must_exist: bool) -> Store | None: ...


def open_store(url: str | None, *, must_exist: bool = False) -> Store | None:
    """Open the database, made or brought to the newest schema where that is needed.

    Args:
        url: ``sqlite:///PATH`` or ``postgresql://user@host/database``; None is the file of this user.
        must_exist: make no SQLite file; a server's database is opened all the same.

    Returns:
        None only with ``must_exist``, if the SQLite file is not there.

    Raises:
        ConfigError: the URL is of another kind, or misspelt.
        StoreError: it cannot be reached, read or written, is no database of ours or of a newer version.
    """
    path = _sqlite_path(url)
    if must_exist and path is not None and not path.exists():
        return None
    from advisor.store.transactions import open_file, open_server

    return open_file(path) if path is not None else open_server(str(url))


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
