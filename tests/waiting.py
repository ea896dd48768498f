"""Waiting for what another process or thread does, without a guess at how long it takes."""

import time
from collections.abc import Callable

WAIT_S = 120.0


def wait_for(is_so: Callable[[], object], within_s: float = WAIT_S) -> None:
    """Until it is; fails if that takes longer."""
    until_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until_s, "it never came so far"
        time.sleep(0.01)
