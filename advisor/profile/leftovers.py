"""Processes that a script left running in sessions of their own.

Ending the child's process group misses those. They inherit the child's environment, so a mark in it
finds them wherever they went; that needs Linux, elsewhere they stay.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from pathlib import Path

MARK = "_GPU_ADVISOR_RUN"
_PROCESSES = Path("/proc")


def new_mark() -> dict[str, str]:
    """A variable for the environment of one child."""
    return {MARK: uuid.uuid4().hex}


def end_leftovers(mark: dict[str, str]) -> list[int]:
    """Kill every process whose environment carries the mark; their ids."""
    wanted = "=".join([MARK, mark[MARK]]).encode()
    ended = []
    for entry in _PROCESSES.glob("[0-9]*"):
        # Others' processes cannot be read, and some end while we look.
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                ended.append(int(entry.name))
    return ended
