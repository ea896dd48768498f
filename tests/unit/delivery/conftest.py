"""What tests of deliveries share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.store.database import open_store
from advisor.store.handle import Store
from tests.delivery.parts import SetClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty database."""
    with open_store(f"sqlite:///{tmp_path}/advisor.db") as opened:
        yield opened


@pytest.fixture
def time() -> SetClock:
    """A clock that stands still."""
    return SetClock()
