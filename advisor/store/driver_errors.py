"""What a database says when something is wrong -> what a person can do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from advisor.core.errors import StoreError
from advisor.store.handle import Store

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
def explained(store: Store) -> Iterator[None]:
    """Tell every trouble of the database as a ``StoreError``, without passwords.

    Raises:
        StoreError: names the database, the trouble and what to do.
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
