"""Keeps other processes of the same user from looking into this one."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator

_PR_GET_DUMPABLE = 3
_PR_SET_DUMPABLE = 4


@contextlib.contextmanager
def unreadable() -> Iterator[None]:
    """Meanwhile ``/proc/PID/environ``, memory and open files of this process are root's alone.

    Linux only. Nothing keeps root from reading them. Debuggers of the same user cannot attach either, and
    a crash leaves no core file, so it does not last longer than it must.
    """
    if sys.platform != "linux":
        yield
        return
    _state.enter()
    try:
        yield
    finally:
        _state.leave()


class _State:
    """Threads profile side by side: the first one closes this process, the last one opens it again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_inside = 0
        self._was_readable = True

    def enter(self) -> None:
        with self._lock:
            if self._num_inside == 0:
                self._was_readable = _prctl(_PR_GET_DUMPABLE) == 1
                _prctl(_PR_SET_DUMPABLE, 0)
            self._num_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._num_inside -= 1
            if self._num_inside == 0 and self._was_readable:
                _prctl(_PR_SET_DUMPABLE, 1)


_state = _State()


def _prctl(option: int, value: int = 0) -> int:
    return int(ctypes.CDLL(None).prctl(option, value))
