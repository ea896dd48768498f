"""Every test of what the store does runs on both databases."""

import pytest

from advisor.store.database import open_store
from tests.machine import needs


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


@pytest.fixture
def store(store_url):
    """An open, empty store of each kind."""
    with open_store(store_url) as opened:
        yield opened
