"""Files that somebody else wrote: opened only if they are files, unpacked only within limits.

A pipe may keep its reader waiting for ever and a device may have no end, so neither is opened. A gzip of
300 KB can hold 300 MB of brackets, so what comes out must stay in proportion to what went in.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_RATIO = 200
"""Profiles of real training unpack to 35 times their size, traces of equal operators to 130 times."""

_ALWAYS_BYTES = 2**24
_BUFFER_BYTES = 2**18
_GZIP = b"\x1f\x8b"


def why_unreadable(error: Exception) -> str:
    """What reading a file raised, without the number of the error and the codec's own words."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text in UTF-8 (byte {error.start + 1:,})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, without waiting for anybody.

    Raises:
        OSError: it is missing, may not be read, or is a folder, pipe, socket or device.
    """
    file = io.FileIO(path, opener=_without_waiting)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device: write its contents to a file", str(path))
    return io.BufferedReader(file, _BUFFER_BYTES)


def open_unpacked(path: Path) -> io.BufferedReader:
    """Open a file that may be gzipped.

    Reading from it raises EOFError where the gzip is cut off, zlib.error where it is damaged, and ValueError
    where it is a bomb.

    Raises:
        OSError: as `open_regular`.
    """
    file = open_regular(path)
    if file.peek(2)[:2] != _GZIP:
        return file
    return io.BufferedReader(_Unpacked(file), _BUFFER_BYTES)


def read_plain(path: Path, *, most_bytes: int) -> bytes:
    """The contents of a file as they are.

    Raises:
        OSError: as `open_regular`.
        ValueError: there are more bytes than that.
    """
    with open_regular(path) as file:
        return _at_most(file, most_bytes)


def first_bytes(path: Path, number: int) -> bytes:
    """The beginning of a file, unpacked if it is gzipped; empty if it cannot be read.

    Raises nothing: who asks wants to know what kind of file it is, and hears of its faults when it is read.
    """
    try:
        with open_unpacked(path) as file:
            return file.read1(number)
    except (OSError, EOFError, ValueError, zlib.error):
        return b""


def is_gzip(path: Path) -> bool:
    """Whether a file begins as gzip does.

    Raises:
        OSError: as `open_regular`.
    """
    with open_regular(path) as file:
        return file.read(2) == _GZIP


def _at_most(file: BinaryIO, most_bytes: int) -> bytes:
    payload = file.read(most_bytes + 1)
    if len(payload) > most_bytes:
        raise ValueError(f"it holds more than {most_bytes / 1e6:.0f} MB")
    return payload


def _without_waiting(path: str, flags: int) -> int:
    # To open a pipe that nobody writes to would wait for a writer.
    return os.open(path, flags | os.O_NONBLOCK)


class _Unpacked(io.RawIOBase):
    """What a gzip holds, as long as it stays in proportion."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self._unpacked = gzip.GzipFile(fileobj=file)
        self._num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        try:
            piece = self._unpacked.read(len(view))
        except gzip.BadGzipFile as error:
            # It is an OSError, though nothing is wrong with the disk.
            raise ValueError(str(error)) from error
        self._num_bytes += len(piece)
        if self._num_bytes > max(_ALWAYS_BYTES, MOST_RATIO * self._file.tell()):
            raise ValueError(f"it unpacks to more than {MOST_RATIO} times its size")
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._unpacked.close()
        self._file.close()
        super().close()
