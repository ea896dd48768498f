"""How long samples take to make, however busy the machine is.

Two times are distinguished. CPU seconds are what the making costs any machine: those of all threads of the
process and of children that have ended, since a decoder may be either. Elapsed seconds hold disks and
networks besides, but not the waiting for a core that other work has.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import torch
from torch.utils import _python_dispatch
from torch.utils.data._utils import worker

from ..progress import WATCHING

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
        return _cpu_s() - self._begin_cpu_s

    def elapsed_s(self) -> float:
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
    """CPU seconds of a thread by its native number; None where it has ended or is unknown."""
    return _scheduled_s(_TASKS / str(task) / _SCHEDULED.name, 0)


def _scheduled_s(file: Path, field: int) -> float | None:
    try:
        return int(file.read_text().split()[field]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


# A DataLoader's worker where there is none: the script's own process makes the batches.


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch's operators, as a worker process has; afterwards as many as before.

    Several spin while one of them waits for a core, which counts as CPU seconds: on a busy machine up to
    200 times those of the work.
    """
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


class _Info(worker.WorkerInfo):
    """Takes attributes, too: torch's own refuses them, of which a profile need not die."""

    __setattr__ = object.__setattr__


class Worker:
    """What the only worker of one iterator knows of itself.

    Data sets share themselves out by it and read random generators that `worker_init_fn` left in it.
    """

    def __init__(self, loader: torch.utils.data.DataLoader[object]) -> None:
        self._info = _Info(id=0, num_workers=1, seed=torch.initial_seed(), dataset=loader.dataset)
        self._begin = getattr(loader, "worker_init_fn", None)

    def begin(self) -> None:
        """What a worker does before its first batch."""
        if self._begin is not None:
            with self.at_work():
                self._begin(0)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """One thread, as a worker process has; ``torch.utils.data.get_worker_info`` knows the worker."""
        before, worker._worker_info = worker._worker_info, self._info
        try:
            with one_thread():
                yield
        finally:
            worker._worker_info = before


# How long the script itself takes to make what it copies to the GPU, where no DataLoader does it.
#
# A replay buffer, a memory-mapped file or a simulator runs for real between two calls of the pretended GPU.
# The time from the GPU's last call to a copy is the making of what is copied. Time that ends in any other
# call is Python's on the way to a kernel, which the host's model counts.

# So few that the first, whose caches are cold as in a script, still count among them.
_CALLS = 20


class Making:
    """Seconds of the script's main thread between the GPU's calls, of stretches that end in a copy to it.

    Disks, and other processes that the script waits for, count as long as it waits; the wait for a core
    of a busy machine does not. The clock of the queue is too slow for every call: a stretch loses all that
    was queued since the copy before it, so a busy machine shows shorter waits. What the script's other
    threads make meanwhile counts by their CPU seconds, on Linux.
    """

    def __init__(self) -> None:
        self.start_span()

    def start_span(self) -> None:
        """Forget what was made so far; the caller's thread is the one that counts."""
        self._thread = threading.get_ident()
        self._made_s, self._num_operators = 0.0, 0
        self._before_s = _others_s()
        self._queued_s = queued_s()
        self.resume()

    def resume(self) -> None:
        """What was not the script's own work ends now."""
        if threading.get_ident() == self._thread:
            self._num_new = 0
            self._begin_cpu_s, self._begin_s = time.thread_time(), time.perf_counter()

    def add_operator(self) -> None:
        """An operator ran on the CPU, and our dispatch mode saw it."""
        if threading.get_ident() == self._thread:
            self._num_new += 1

    def copied(self) -> None:
        """What the script has made since the GPU's last call is copied to it now."""
        if threading.get_ident() != self._thread:
            return
        cpu_s, whole_s = time.thread_time() - self._begin_cpu_s, time.perf_counter() - self._begin_s
        before_s, self._queued_s = self._queued_s, queued_s()
        if before_s is None or self._queued_s is None:
            whole_s = cpu_s  # a busy machine's wall clock would pass for a slow disk
        else:
            whole_s -= self._queued_s - before_s
        self._made_s += max(cpu_s, whole_s)
        self._num_operators += self._num_new
        self.resume()

    def seconds(self) -> float:
        """Of this span, without what our dispatch mode costs operators of the CPU."""
        beside_s = sum(spent_s - self._before_s.get(task, 0.0) for task, spent_s in _others_s().items())
        ours_s = self._num_operators * _dispatch_s() if self._num_operators else 0.0
        return max(0.0, self._made_s - ours_s) + max(0.0, beside_s)


def _others_s() -> dict[int, float]:
    """CPU seconds of each other thread that the script started; those of torch's operators only spin."""
    threads = (thread for thread in threading.enumerate() if thread is not threading.current_thread())
    tasks = [thread.native_id for thread in threads if thread.name != WATCHING]
    spent_s = {task: on_core_s(task) for task in tasks if task is not None}
    return {task: seconds for task, seconds in spent_s.items() if seconds is not None}


def _dispatch_s() -> float:
    with_modes_s = _operator_s()
    with _python_dispatch._disable_current_modes():
        return max(0.0, with_modes_s - _operator_s())


def _operator_s() -> float:
    one = torch.ones(1, device="cpu")
    begin_s = time.thread_time()
    for _ in range(_CALLS):
        one + one
    return (time.thread_time() - begin_s) / _CALLS
