"""How long the script itself takes to make what it copies to the GPU, where no DataLoader does it.

A replay buffer, a memory-mapped file or a simulator runs for real between two calls of the pretended GPU.
The time from the GPU's last call to a copy is the making of what is copied. Time that ends in any other
call is Python's on the way to a kernel, which the host's model counts.
"""

from __future__ import annotations

import threading
import time

import torch
from torch.utils import _python_dispatch

from .stopwatch import on_core_s, queued_s

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
    """CPU seconds of each other thread that Python started; those of torch's operators only spin."""
    tasks = [thread.native_id for thread in threading.enumerate() if thread is not threading.current_thread()]
    spent_s = {task: on_core_s(task) for task in tasks if task is not None}
    return {task: seconds for task, seconds in spent_s.items() if seconds is not None}


def _dispatch_s() -> float:
    """CPU seconds that the modes of now add to an operator."""
    with_modes_s = _operator_s()
    with _python_dispatch._disable_current_modes():
        return max(0.0, with_modes_s - _operator_s())


def _operator_s() -> float:
    one = torch.ones(1, device="cpu")
    begin_s = time.thread_time()
    for _ in range(_CALLS):
        one + one
    return (time.thread_time() - begin_s) / _CALLS
