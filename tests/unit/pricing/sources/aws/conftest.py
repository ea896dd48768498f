"""A fake AWS for the tests of its source."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tests.clouds.aws_server import FakeAws, running
from tests.clouds.aws_world import World, small_world

Start = Callable[..., FakeAws]


@pytest.fixture
def start(monkeypatch):
    """Starts a fake AWS and leads boto3 there: ``start(world, page_size=2)``."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with ExitStack() as stack:

        def begin(world: World | None = None, **options: Any) -> FakeAws:
            aws = stack.enter_context(running(world or small_world(), **options))
            for name, value in aws.environment().items():
                monkeypatch.setenv(name, value)
            return aws

        yield begin


@pytest.fixture
def aws(start):
    """The small world, served."""
    return start()
