"""What tests of deliveries share."""

import pytest

from advisor.store.database import open_store
from tests.delivery.parts import SetClock


@pytest.fixture
def store(tmp_path):
    """An empty database."""
    with open_store(f"sqlite:///{tmp_path}/advisor.db") as opened:
        yield opened


@pytest.fixture
def time():
    """A clock that stands still."""
    return SetClock()
