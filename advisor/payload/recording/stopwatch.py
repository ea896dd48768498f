"""How long samples take to make, however busy the machine is.

Two times are told apart. CPU seconds are what the making costs any machine: those of all threads of the
process and of children that have ended, since a decoder may be either. Elapsed seconds hold disks and
networks besides, but not the waiting for a core that other work has.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import ModuleType

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows has none, and children count as nothing there.
    resource = None

# Nanoseconds on a core, nanoseconds in the run queue, number of time slices; Linux only.
_SCHEDULED = Path("/proc/thread-self/schedstat")
_TASKS = Path("/proc/self/task")
_TRIES = 5


class Stopwatch:
    """Runs from its construction on, and stands still while others have the cores.

    Where the system does not tell how long that was, nothing but the CPU's seconds elapse: a busy machine's
    wall clock would pass for a slow disk.
    """

    def __init__(self) -> None:
        self._begin_cpu_s = _cpu_s()
        self._begin_s, self._queued_s = _instant()

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        return _cpu_s() - self._begin_cpu_s

    def elapsed_s(self) -> float:
        """Seconds so far."""
        end_s, after_s = _instant()
        if self._queued_s is None or after_s is None:
            return self.cpu_s()
        return max(0.0, end_s - self._begin_s - (after_s - self._queued_s))


def _cpu_s() -> float:
    own_s = time.process_time()
    if resource is None:
        return own_s
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own_s + float(children.ru_utime + children.ru_stime)


def _instant() -> tuple[float, float | None]:
    """Seconds of the wall's clock, and those in the run queue until that very moment.

    A core that is lost between the two readings would count in one of them alone, so they are taken again.
    Where that never helps, what is lost matters little.
    """
    for _ in range(_TRIES):
        before_s, wall_s, after_s = queued_s(), time.perf_counter(), queued_s()
        if before_s == after_s:
            break
    return wall_s, after_s


def queued_s() -> float | None:
    """Seconds that this thread has waited for a core; None where the system does not tell."""
    return _scheduled_s(_SCHEDULED, 1)


def on_core_s(task: int) -> float | None:
    """CPU seconds of a thread by its native number; None where it has ended or nobody tells."""
    return _scheduled_s(_TASKS / str(task) / _SCHEDULED.name, 0)


def _scheduled_s(file: Path, field: int) -> float | None:
    try:
        return int(file.read_text().split()[field]) / 1e9
    except (OSError, ValueError, IndexError):
        return None
