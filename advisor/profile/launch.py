"""Starts the child process, waits for it, and leaves nothing of it running."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import InputError
from advisor.profile.leftovers import end_leftovers, new_mark

_POLL_S = 0.03
_LOG_TAIL_BYTES = 64 * 1024

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
    log_path: Path,
    progress_path: Path,
    timeout_s: float,
    progress: Progress | None,
    stall_s: float = math.inf,
) -> Ending:
    """Run a command to its end, or kill it and its process group at the timeout.

    Args:
        command: program and arguments.
        environment: of the process.
        log_path: takes what it prints.
        progress_path: the process appends lines to it, each in one piece.
        timeout_s: seconds that the whole may take.
        progress: is told each line.
        stall_s: seconds that may pass from one line to the next.

    Raises:
        InputError: the interpreter cannot be started.
        KeyboardInterrupt: passed on after the process group was killed.
    """
    with _started(command, environment, log_path) as process:
        lines = _Lines(progress_path, progress)
        returncode = _wait(process, lines, timeout_s, stall_s)
    return Ending(returncode=returncode, log=_tail(log_path))


@contextlib.contextmanager
def _started(
    command: Sequence[str | Path], environment: dict[str, str], log_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    mark = new_mark()
    with log_path.open("wb") as log:
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment | mark,
                # Its own session and so its own process group: all it starts can be ended at once.
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(
                f"cannot start the Python interpreter {str(command[0])!r}: {error.strerror}."
                " Name one that has torch with --python."
            ) from error
    try:
        yield process
    finally:
        # Also when the child ended well: the script may have left processes behind.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        end_leftovers(mark)


class _Lines:
    """Tells the whole lines that were appended to a file since it was last looked at."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._path = path
        self._progress = progress
        self._position = 0
        self.told_at_s = time.monotonic()

    def tell(self) -> None:
        if self._progress is None or not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            whole = file.read().rpartition(b"\n")[0]
        if whole:
            self._position += len(whole) + 1
            self.told_at_s = time.monotonic()
        for line in whole.decode("utf-8").splitlines():
            self._progress(line)


def _wait(process: subprocess.Popen[bytes], lines: _Lines, timeout_s: float, stall_s: float) -> int | None:
    deadline_s = time.monotonic() + timeout_s
    returncode = None
    while returncode is None and time.monotonic() < min(deadline_s, lines.told_at_s + stall_s):
        with contextlib.suppress(subprocess.TimeoutExpired):
            returncode = process.wait(timeout=_POLL_S)
        lines.tell()
    return returncode


def _tail(log_path: Path) -> str:
    with log_path.open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
        return log.read().decode("utf-8", errors="replace")
