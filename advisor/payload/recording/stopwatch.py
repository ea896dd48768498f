"""Time that a thread spends working or waiting for disks and networks, not for a core of a busy machine."""

from __future__ import annotations

import time
from pathlib import Path

# Nanoseconds on a core, nanoseconds in the run queue, number of time slices; Linux only.
_SCHEDULED = Path("/proc/thread-self/schedstat")


class Stopwatch:
    """Runs from its construction on, and stands still while others have the cores.

    Where the system does not tell that, it shows the wall clock's time.
    """

    def __init__(self) -> None:
        self._queued_s = _queued_s()
        self._begin_s = time.perf_counter()

    def elapsed_s(self) -> float:
        """Seconds so far."""
        wall_s = time.perf_counter() - self._begin_s
        return max(0.0, wall_s - (_queued_s() - self._queued_s))


def _queued_s() -> float:
    try:
        return int(_SCHEDULED.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
