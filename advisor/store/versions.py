"""The version of a database's schema: read at each open, and raised by Alembic where it is old."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, Select, column, inspect, select, table

from advisor.core.errors import StoreError
from advisor.store.handle import Store
from advisor.store.schema import VERSION
from advisor.store.transactions import reading, writing

MIGRATIONS = Path(__file__).parent / "migrations"
KNOWN = tuple(f"{number:04}" for number in range(1, int(VERSION) + 1))
"""Every version there has been, from the oldest."""

_VERSION_TABLE = "alembic_version"


def bring_to_newest(store: Store) -> None:
    """Make the tables, or change those of an older version; of several processes one does it.

    Raises:
        StoreError: the database is of a newer version or another program's, or cannot be written.
    """
    with reading(store) as connection:
        if _version(connection, store.place) == VERSION:
            return
    with writing(store) as connection:
        if _version(connection, store.place) != VERSION:
            upgrade(connection, "head")


def upgrade(connection: Connection, revision: str) -> None:
    """Run the migrations up to a revision within the connection's transaction."""
    # Only here: it costs more than all the rest of opening.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # Alembic takes % for the beginning of a variable.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, revision)


def _version(connection: Connection, place: str) -> str | None:
    """The database's version, None if it is empty."""
    inspector = inspect(connection)
    if not inspector.has_table(_VERSION_TABLE):
        if inspector.get_table_names():
            raise StoreError(
                f"the database {place} holds another program's tables: name an empty one in store.url,"
                " or a file that is not there yet."
            )
        return None
    versions: Select[object] = select(column("version_num")).select_from(table(_VERSION_TABLE))
    rows: Sequence[object] = connection.execute(versions).scalars().all()
    # SQLite keeps whatever was written, of any type.
    if any(version not in KNOWN for version in rows) or len(rows) > 1:
        shown = ", ".join(reprlib.repr(version) for version in rows[:3])
        raise StoreError(
            f"the database {place} has version {shown}, this advisor knows {VERSION!r} and older: update"
            " gpu-advisor, or name another database in store.url."
        )
    return str(rows[0]) if rows else None
