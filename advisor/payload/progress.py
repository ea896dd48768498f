"""What a child tells its parent: where it is, in short lines of JSON, and at the end its result."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from .protocol import VERSION, ChildJob, Details, ProgressLine, RunPhase, ScriptJob, Status
from .script import own_line

Tell = Callable[[ProgressLine], None]
_EVERY_S = 0.2


class Teller:
    """Writes lines, but not more than someone could read."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._told: set[str] = set()
        self._told_at_s = 0.0

    def tell(self, event: ProgressLine) -> None:
        """Say where the run is; a phase that is new is reported at once."""
        now_s, phase = self._clock(), event["phase"]
        if phase in self._told and now_s < self._told_at_s + _EVERY_S:
            return
        self._told.add(phase)
        self._told_at_s = now_s
        known = {name: value for name, value in event.items() if value is not None}
        # The script may have closed, filled or removed whatever there is to write to.
        with contextlib.suppress(Exception):
            self._write(json.dumps(known))


class Position:
    """Where a run is between its start and its last optimizer step."""

    def __init__(self, tell: Tell, num_steps: int) -> None:
        self._tell = tell
        self._num_wanted = num_steps
        self._num_steps = self._num_evaluated = self._num_backward = 0
        self._num_before: int | None = None

    def evaluated(self) -> None:
        """A model was asked without gradients."""
        self._num_evaluated += 1
        self._tell(
            {"phase": RunPhase.EVALUATION, "step": self._num_steps or None, "done": self._num_evaluated}
        )

    def went_backward(self) -> None:
        """A backward pass, one micro-step, has ended."""
        self._num_backward += 1
        total = self._num_before
        self._tell_step(self._num_backward, None if total and self._num_backward > total else total)

    def stepped(self, num_steps: int) -> None:
        self._num_steps = num_steps
        self._num_before = self._num_backward or None
        self._num_backward = self._num_evaluated = 0
        self._tell_step(None, None)

    def _tell_step(self, done: int | None, total: int | None) -> None:
        step = self._num_steps + 1
        wanted = self._num_wanted if step <= self._num_wanted else None
        self._tell(
            {"phase": RunPhase.TRAINING, "step": step, "num_steps": wanted, "done": done, "total": total}
        )


# Ending a script that wants to train for days, whatever it does to exceptions.

_MOST_RAISES = 20


class StopProfiling(BaseException):
    """Ends the script; a BaseException so that ``except Exception`` lets it pass."""


class Stopper:
    """Raises once the result is safe, raises again if swallowed, and at last leaves the process."""

    def __init__(self, *, grace_s: float = 5.0) -> None:
        self.stopping = False
        self._raises = 0
        self._grace_s = grace_s

    def stop(self) -> None:
        """Begin to end the script: call it only after the result was written."""
        self.stopping = True
        # A script may hang in `finally` or in a bare `except`: leave without asking.
        watchdog = threading.Timer(self._grace_s, os._exit, args=(0,))
        watchdog.daemon = True
        watchdog.start()
        self.check()

    def check(self) -> None:
        """Raise if the script should have ended; hooks of all kinds call this."""
        if not self.stopping:
            return
        self._raises += 1
        if self._raises > _MOST_RAISES:
            os._exit(0)
        raise StopProfiling


# Ends a script that takes more of the machine's memory than it may, before the machine runs out of it.


_LOOK_EVERY_S = 0.05
_COUNTED = ("RssAnon:", "RssShmem:")  # files that are mapped can be read again
WATCHING = "advisor-watches-memory"  # the name of its thread


def watch(job: ScriptJob) -> None:
    """From now on, in a thread of its own; the one that calls runs the script, with torch as it is."""
    most_bytes = job["memory_bytes"]
    if most_bytes is not None and held_bytes() is not None:
        script = threading.get_ident()
        arguments = (job, most_bytes, script)
        threading.Thread(target=_watch, args=arguments, name=WATCHING, daemon=True).start()


def _watch(job: ScriptJob, most_bytes: int, script: int) -> None:
    pause = threading.Event()
    while not pause.wait(_LOOK_EVERY_S):
        held = held_bytes() or 0
        if held > most_bytes and not Path(job["result"]).exists():
            # Not before: a frame that is held keeps all tensors of its function.
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


# How a child ends: its result whole in its place, then out of the process.

# Room for the parent to take out secrets before it cuts as short as a person wants it.
_MOST_CHARACTERS = 65_536
_MOST_TEXTS = 200


def write_result(job: ChildJob, status: Status, details: Details) -> None:
    """Put the result in its place whole or not at all."""
    target = Path(job["result"])
    temporary = target.with_suffix(".part")
    # The version first: nothing else may be read of a result of another one.
    kept = details.copy()
    for text in ("message", "traceback"):
        if text in kept:
            kept[text] = _cut(kept[text])
    if "refused" in kept:
        kept["refused"] = [_cut(text) for text in kept["refused"][:_MOST_TEXTS]]
    if "warnings" in kept:
        kept["warnings"] = [
            {
                "code": warning["code"],
                "facts": {
                    name: _cut(it) if isinstance(it, str) else it for name, it in warning["facts"].items()
                },
            }
            for warning in kept["warnings"][:_MOST_TEXTS]
        ]
    document = {"format_version": VERSION, "status": status, **kept}
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(target)


def refuse(job: ChildJob) -> None:
    """Answer a job of another version: the parent sees ours in the result, and leave the process."""
    write_result(job, Status.CRASHED, {"message": f"the payload reads jobs of version {VERSION} only"})
    leave()


def leave() -> None:
    """End the process."""
    # Not sys.exit: exit handlers of the script would upload, save or wait.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


def _cut(text: str) -> str:
    """Both ends of a text: an exception's can be as long as a data set."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    half = _MOST_CHARACTERS // 2
    return f"{text[:half]} [... cut ...] {text[-half:]}"


def unusable_torch() -> tuple[Status, Details] | None:
    """Status and message of a torch that is missing, broken or too old; None for one that will do.

    It is imported to find out.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            return Status.NO_TORCH, {"message": str(error)}
        return Status.BROKEN_TORCH, {"message": str(error)}
    except Exception as error:  # noqa: BLE001 - a broken installation can raise anything
        return Status.BROKEN_TORCH, {"message": f"{type(error).__name__}: {error}"}
    if not hasattr(torch, "accelerator"):
        return Status.OLD_TORCH, {"message": str(torch.__version__)}
    return None
