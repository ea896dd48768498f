"""Starts the child process, waits for it, and leaves nothing of it running."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.profile.child_files import Lines
from advisor.profile.leftovers import end_leftovers, new_mark
from advisor.profile.privacy import unreadable
from advisor.profile.terminal import Terminal

_POLL_S = 0.03
# Longer than the launcher takes to kill what it can.
_LAUNCHER_S = 6.0
_LAUNCHER = Path(__file__).with_name("launcher.py")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the child ended.

    Attributes:
        returncode: of the process, negative for a signal; None if it ran into the timeout.
        log: the end of what the script printed.
    """

    returncode: int | None
    log: str


def run_child(
    command: Sequence[str | Path],
    *,
    environment: dict[str, str],
    progress_path: Path,
    timeout_s: float,
    progress: Progress | None,
    stall_s: float = math.inf,
) -> Ending:
    """Run a command to its end, or kill it and its process group at the timeout.

    It has a pseudo-terminal, which nobody types at, and its parent never had a credential (``launcher.py``).

    Args:
        command: program and arguments.
        environment: of the process.
        progress_path: the process appends lines to it, each in one piece.
        timeout_s: seconds that the whole may take.
        progress: is told each line.
        stall_s: seconds that may pass from one line to the next.

    Raises:
        InputError: the interpreter cannot be started.
        KeyboardInterrupt: passed on after the process group was killed.
    """
    with unreadable(), Terminal() as terminal:
        with _started(command, environment, terminal) as (process, report):
            lines = Lines(progress_path, progress)
            returncode = _wait(process, terminal, lines, timeout_s, stall_s)
            _check_started(report, command)
        terminal.read_rest()
        return Ending(returncode=returncode, log=terminal.tail())


@contextlib.contextmanager
def _started(
    command: Sequence[str | Path], environment: dict[str, str], terminal: Terminal
) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO]]:
    mark = new_mark()
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as report:
        os.set_blocking(ours, False)
        try:
            words = (str(os.getpid()), str(theirs), *processes.located(command))
            process = processes.start(
                processes.isolated(sys.executable, "-S", str(_LAUNCHER), *words),
                pass_fds=[theirs],
                stdin=terminal.stdin,
                stdout=terminal.stdout,
                stderr=terminal.stdout,
                environment=environment | mark,
                # Its own session and so its own process group: all it starts can be ended at once.
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        try:
            yield process, report
        finally:
            _end(process)
            end_leftovers(mark)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The launcher, which kills all that the script left; and its group, as a script may have killed it."""
    with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        # A script may have stopped it, too. After its end this does nothing.
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=_LAUNCHER_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _check_started(report: BinaryIO, command: Sequence[str | Path]) -> None:
    number = report.read(8) or b""
    if number.isdigit():
        raise InputError(
            f"cannot start the Python interpreter {str(command[0])!r}: {os.strerror(int(number))}."
            " Name one that has torch with `profile.python`."
        )


def _wait(
    process: subprocess.Popen[bytes], terminal: Terminal, lines: Lines, timeout_s: float, stall_s: float
) -> int | None:
    heard_at_s = time.monotonic()
    deadline_s = heard_at_s + timeout_s
    returncode = process.poll()
    while returncode is None and time.monotonic() < min(deadline_s, heard_at_s + stall_s):
        terminal.read_for(_POLL_S)
        returncode = process.poll()
        if lines.tell():
            heard_at_s = time.monotonic()
    lines.tell_all()
    return returncode
