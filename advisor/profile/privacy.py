"""Keeps other processes of the same user from looking into this one."""

from __future__ import annotations

import contextlib
import ctypes
import sys
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
    libc = ctypes.CDLL(None)
    before = libc.prctl(_PR_GET_DUMPABLE)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    try:
        yield
    finally:
        # 2 is for the kernel alone to set.
        libc.prctl(_PR_SET_DUMPABLE, 1 if before == 1 else 0)
