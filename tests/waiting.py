"""Waiting for what another process or thread does, without a guess at how long it takes."""

import time
from collections.abc import Callable
from pathlib import Path

WAIT_S = 120.0


def wait_for(is_so: Callable[[], object], within_s: float = WAIT_S) -> None:
    """Until it is; fails if that takes longer."""
    until_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until_s, "it never came so far"
        time.sleep(0.01)


def wait_for_end(pid: int | str) -> None:
    """Until a process is gone, or dead and init has yet to collect it: a signal takes its time to arrive."""
    wait_for(lambda: _has_ended(pid))


def _has_ended(pid: int | str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
