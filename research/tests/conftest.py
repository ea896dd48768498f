"""Fixtures and options of the product's tests, and models profiled in forks of this process."""

import importlib.util

import pytest

from tests.warm.server import LATE

pytest_plugins = ["tests.conftest", "tests.unit.conftest"]


@pytest.fixture(scope="session")
def warm_process():
    """What each fork would import, imported here once, as in a notebook that has worked with models."""
    for name in ("torch", *LATE, "transformers"):
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
