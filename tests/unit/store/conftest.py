"""Every test of what the store does runs on both databases."""

import pytest
import sqlalchemy as sa

from advisor.store import schema
from advisor.store.database import open_store
from tests.machine import needs
from tests.postgres import new_database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs("postgresql"))])
def store_url(request, tmp_path):
    """An empty database of each kind."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path}/advisor.db"


@pytest.fixture
def sqlite_store(tmp_path):
    """Takes any value in any column, as PostgreSQL does not."""
    with open_store(f"sqlite:///{tmp_path}/advisor.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres_made(postgres_server):
    """A database with all tables, which take longer to make than to empty."""
    with new_database(postgres_server) as url, open_store(url):
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs("postgresql"))])
def store(request, tmp_path):
    """An open, empty store of each kind."""
    if request.param == "sqlite":
        with open_store(f"sqlite:///{tmp_path}/advisor.db") as opened:
            yield opened
        return
    tables = ", ".join(schema.metadata.tables.keys() - {schema.alembic_version.name})
    with open_store(request.getfixturevalue("postgres_made")) as opened:
        with opened.engine.begin() as connection:
            connection.execute(sa.text(f"TRUNCATE {tables} RESTART IDENTITY CASCADE"))
        yield opened
