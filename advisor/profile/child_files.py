"""Reads files that a script can put anything in place of: without waiting, without end, without a link."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from advisor.core.errors import ProfileError

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    # A link leads to a file that is none of the script's business, or to one that never ends.
    | getattr(os, "O_NOFOLLOW", 0)
    # Opening a pipe waits for its writer.
    | getattr(os, "O_NONBLOCK", 0)
)
# All that a process may have to tell; to measure a whole grid takes a tenth.
_MOST_LINES_BYTES = 64 * 2**20
_MOST_AT_ONCE_BYTES = 2**20


class UnusableFileError(ProfileError):
    """Something else stands where a file of ours should."""


def open_foreign(path: Path, most_bytes: int) -> BinaryIO | None:
    """A regular file of limited size, opened; None if there is none.

    Raises UnusableFileError: it is a link, a pipe, a device or a folder, too large, or cannot be opened.
    """
    try:
        file = os.fdopen(os.open(path, _FLAGS), "rb", buffering=0)
    except FileNotFoundError:
        return None
    except OSError as error:
        # Among them: O_NOFOLLOW met a link, and a folder is no file for Python.
        raise UnusableFileError(_unusable(path, f"is no regular file ({error.strerror})")) from error
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes:
        return file
    file.close()
    what = "is larger than allowed" if stat.S_ISREG(status.st_mode) else "is no regular file"
    raise UnusableFileError(_unusable(path, what))


def read_foreign(path: Path, most_bytes: int) -> bytes | None:
    """The contents of such a file; None if there is none. Raises UnusableFileError: as ``open_foreign``."""
    file = open_foreign(path, most_bytes)
    if file is None:
        return None
    with file:
        # It may grow meanwhile.
        return file.read(most_bytes)


def _unusable(path: Path, what: str) -> str:
    return (
        f"{path.name}, which the profiling process writes to, {what}: it was not read. If the script"
        " does not write to advisor's temporary files, please report this."
    )


class AppendedLines:
    """Tells the whole lines that were appended to a file since it was last looked at."""

    def __init__(self, path: Path, tell: Callable[[str], None] | None) -> None:
        self._path = path
        self._tell = tell
        self._position = 0

    def tell(self) -> bool:
        """Tell what is new, of a lot the beginning; whether anything was."""
        part = self._next_part()
        # A line without an end is dropped where it begins to be a burden.
        end = len(part) if len(part) == _MOST_AT_ONCE_BYTES and b"\n" not in part else part.rfind(b"\n") + 1
        self._position += end
        if self._tell is not None and b"\n" in part:
            for line in part[: end - 1].decode("utf-8", errors="replace").split("\n"):
                self._tell(line)
        return end > 0

    def tell_all(self) -> None:
        """Tell all that is left."""
        while self.tell():
            pass

    def _next_part(self) -> bytes:
        if self._position >= _MOST_LINES_BYTES:
            return b""
        try:
            file = open_foreign(self._path, _MOST_LINES_BYTES)
        except UnusableFileError:
            return b""
        if file is None:
            return b""
        with file:
            file.seek(self._position)
            return file.read(_MOST_AT_ONCE_BYTES)
