"""Starts the child process, waits for it, and leaves nothing of it running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import InputError

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
) -> Ending:
    """Run a command to its end, or kill it and its process group at the timeout.

    Raises:
        InputError: the interpreter cannot be started.
        KeyboardInterrupt: passed on after the process group was killed.
    """
    with _started(command, environment, log_path) as process:
        returncode = _wait(process, progress_path, timeout_s, progress)
    return Ending(returncode=returncode, log=_tail(log_path))


@contextlib.contextmanager
def _started(
    command: Sequence[str | Path], environment: dict[str, str], log_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log_path.open("wb") as log:
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
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


def _wait(
    process: subprocess.Popen[bytes],
    progress_path: Path,
    timeout_s: float,
    progress: Progress | None,
) -> int | None:
    deadline = time.monotonic() + timeout_s
    lines_told = 0
    returncode = None
    while returncode is None and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            returncode = process.wait(timeout=_POLL_S)
        lines_told = _tell(progress_path, lines_told, progress)
    return returncode


def _tell(progress_path: Path, lines_told: int, progress: Progress | None) -> int:
    if progress is None or not progress_path.exists():
        return lines_told
    lines = progress_path.read_text(encoding="utf-8").splitlines()
    for line in lines[lines_told:]:
        progress(line)
    return len(lines)


def _tail(log_path: Path) -> str:
    with log_path.open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
        return log.read().decode("utf-8", errors="replace")
