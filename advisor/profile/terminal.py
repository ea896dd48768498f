"""The pseudo-terminal of a script: it has a size, its input is at its end, the end of its output is kept."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import time
from types import TracebackType

_TAIL_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
# What a system keeps of output that nobody has read yet is far less.
_MOST_LEFT_BYTES = 2**20
ROWS, COLUMNS = 24, 80
_CTRL_D = b"\x04"
_Attributes = list[int | list[bytes | int]]  # of a terminal, as termios has them
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


class Terminal:
    """Both ends of it; where the system has none to give, a pipe.

    Attributes:
        stdin, stdout: for ``subprocess.Popen``.
    """

    def __init__(self) -> None:
        self._settings: _Attributes | None = None
        self._tail = bytearray()
        try:
            self._ours, self._theirs = os.openpty()
        except OSError:
            # A container without /dev/pts.
            self._ours, self._theirs = os.pipe()
            self.stdin: int = subprocess.DEVNULL
        else:
            self.stdin = self._theirs
            self._settings = _set_up(self._theirs)
        self.stdout = self._theirs
        os.set_blocking(self._ours, False)

    def __enter__(self) -> Terminal:
        """Itself, to be closed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        """Close both ends."""
        # Ours alone would see a hang-up whenever the script closes its own, so theirs is kept until now.
        os.close(self._theirs)
        os.close(self._ours)

    def read_for(self, seconds: float) -> None:
        """Take what is printed in this time: whoever prints must never wait for a reader."""
        deadline_s = time.monotonic() + seconds
        self._end_input()
        ready = select.poll()
        ready.register(self._ours, select.POLLIN)
        while (left_s := deadline_s - time.monotonic()) > 0:
            if not ready.poll(left_s * 1000) or not self._read():
                return

    def read_rest(self) -> None:
        """Take what is left of a script that has ended; somebody may still print, without an end."""
        num_bytes = 0
        while (read := self._read()) and num_bytes < _MOST_LEFT_BYTES:
            num_bytes += read

    def tail(self) -> str:
        """The end of what was printed, as lines of plain text."""
        return plain(bytes(self._tail).decode("utf-8", errors="replace"))

    def _read(self) -> int:
        try:
            chunk = os.read(self._ours, _CHUNK_BYTES)
        except OSError:
            return 0
        self._tail += chunk
        del self._tail[:-_TAIL_BYTES]
        return len(chunk)

    def _end_input(self) -> None:
        """Who makes the terminal wait for a key, as readline and so pdb do, gets Ctrl-D and the end again."""
        if self._settings is None:
            return
        import termios

        with contextlib.suppress(OSError, termios.error):
            settings = termios.tcgetattr(self._theirs)
            if settings == self._settings:
                return
            # To who reads whole lines Ctrl-D is the end. To who reads keys it is one, and must be the last:
            # with our settings first, no read that begins after it waits.
            if not settings[3] & termios.ICANON:
                termios.tcsetattr(self._theirs, termios.TCSANOW, self._settings)
            os.write(self._ours, _CTRL_D)


def _set_up(terminal: int) -> _Attributes:
    """Reading gives end-of-file at once, and output stays as it is written; its settings."""
    import termios

    settings = termios.tcgetattr(terminal)
    settings[0], settings[3] = 0, 0
    settings[1] &= ~termios.OPOST
    settings[6][termios.VMIN] = settings[6][termios.VTIME] = 0
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    termios.tcsetwinsize(terminal, (ROWS, COLUMNS))
    return termios.tcgetattr(terminal)


def plain(text: str) -> str:
    r"""Text without colours and cursor movements; of a line that was written over, what was left to see.

    >>> plain("\x1b[32m 10%\r 100%\x1b[0m\ndone\r\n")
    ' 100%\ndone\n'
    """
    lines = _SEQUENCES.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
