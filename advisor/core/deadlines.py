"""Calls that may never end, in threads that hold up neither the caller nor the end of the process.

Timeouts of HTTP libraries are for one ``recv``: a server that sends a byte a second never meets one. Threads
of ``ThreadPoolExecutor`` are joined when the process ends, so those of here are daemons of their own.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TypeVar

from advisor.core.units import format_duration

T = TypeVar("T")
# Of the call that a thread works for; each thread starts without any.
_END_S: ContextVar[float] = ContextVar("end_s", default=math.inf)


class LateError(Exception):
    """A call took longer than it may as a whole."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"no answer within {format_duration(limit_s)}")
        self.limit_s = limit_s


def left_s() -> float:
    """Seconds until the call that this thread works for is given up; infinite outside of `within`."""
    return _END_S.get() - monotonic()


def within(limit_s: float, call: Callable[[], T]) -> T:
    """What the call returns or raises, if it does so in time.

    A call that is late goes on in its thread, where `left_s` says when to stop, and its end is not reported.

    Raises LateError: it is late.
    """
    future: Future[T] = Future()
    end_s = monotonic() + min(limit_s, left_s())

    def run() -> None:
        _END_S.set(end_s)
        _settle(future, call)

    threading.Thread(target=run, daemon=True, name=f"{threading.current_thread().name} call").start()
    if not wait((future,), timeout=max(end_s - monotonic(), 0.0)).done:
        raise LateError(limit_s)
    return future.result()


def completed(jobs: Sequence[Callable[[], T]], *, num_threads: int, name: str) -> Iterator[T]:
    """Results in the order in which they are ready; who stops early waits for no job, and no other begins.

    Args:
        jobs: what to run; the first error among them is raised.
        num_threads: how many run at once at most.
        name: how the names of the threads begin.
    """
    waiting: SimpleQueue[Callable[[], T]] = SimpleQueue()
    done: SimpleQueue[Future[T]] = SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            try:
                job = waiting.get_nowait()
            except Empty:
                return
            done.put(_settle(Future(), job))

    for job in jobs:
        waiting.put(job)
    for number in range(min(num_threads, len(jobs))):
        threading.Thread(target=work, daemon=True, name=f"{name} {number}").start()
    try:
        for _ in jobs:
            yield done.get().result()
    finally:
        stopped.set()


def _settle(future: Future[T], call: Callable[[], T]) -> Future[T]:
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - the caller that waits for the result gets it
        future.set_exception(error)
    return future
