"""A fake AWS for the tests of its source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.clouds.aws_server import FakeAws, running
from tests.clouds.aws_world import World, small_world

Start = Callable[..., FakeAws]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
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
def aws(start: Start) -> FakeAws:
    """The small world, served."""
    return start()
