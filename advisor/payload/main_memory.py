"""Ends a script that takes more of the machine's memory than it may, before the machine runs out of it."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path

from .protocol import ScriptJob, Status
from .results import leave, write_result
from .script import own_line

_EVERY_S = 0.05
_COUNTED = ("RssAnon:", "RssShmem:")  # files that are mapped can be read again


def watch(job: ScriptJob) -> None:
    """From now on, in a thread of its own; the one that calls runs the script, with torch as it is."""
    most_bytes = job["memory_bytes"]
    if most_bytes is not None and held_bytes() is not None:
        script = threading.get_ident()
        threading.Thread(target=_watch, args=(job, most_bytes, script), daemon=True).start()


def _watch(job: ScriptJob, most_bytes: int, script: int) -> None:
    pause = threading.Event()
    while not pause.wait(_EVERY_S):
        held = held_bytes() or 0
        if held > most_bytes and not Path(job["result"]).exists():
            _end(job, held, script)


def _end(job: ScriptJob, held: int, script: int) -> None:
    # Not before: whoever holds a frame keeps all tensors of its function.
    stack = traceback.StackSummary.extract(traceback.walk_stack(sys._current_frames().get(script)))
    stack.reverse()
    message = f"{held / 2**30:.1f} GiB of the {(job['memory_bytes'] or 0) / 2**30:.1f} GiB"
    write_result(job, Status.FULL_MEMORY, {"message": message, **own_line(stack)})
    leave()


def held_bytes() -> int | None:
    """Main memory of this process, without mapped files; None where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(_COUNTED))
