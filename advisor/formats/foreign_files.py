"""Files that someone else wrote: only real files, unpacked within limits, JSON checked piece by piece.

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
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NoReturn, TextIO

MOST_RATIO = 200
"""Profiles of real training unpack to 35 times their size, traces of equal operators to 130 times."""

_ALWAYS_BYTES = 2**24
_BUFFER_BYTES = 2**18
_GZIP = b"\x1f\x8b"
_LONGEST_VALUE = 200


def shown(value: object) -> str:
    """A value as a message names it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def why_unreadable(error: Exception) -> str:
    """What reading a file raised, without the number of the error and the codec's own words."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text in UTF-8 (byte {error.start + 1:,})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, without waiting for anybody.

    Raises OSError: it is missing, may not be read, or is a folder, pipe, socket or device.
    """
    # To open a pipe without a writer would wait for one.
    file = io.FileIO(path, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device: write its contents to a file", str(path))
    return io.BufferedReader(file, _BUFFER_BYTES)


def open_unpacked(path: Path) -> io.BufferedReader:
    """Open a file that may be gzipped. Raises OSError: as `open_regular`.

    Reading from it raises EOFError where the gzip is cut off, zlib.error where it is damaged, and ValueError
    where it is a bomb.
    """
    file = open_regular(path)
    is_packed = file.peek(2)[:2] == _GZIP
    return io.BufferedReader(_Unpacked(file), _BUFFER_BYTES) if is_packed else file


def read_plain(path: Path, *, most_bytes: int) -> bytes:
    """A file as it is. Raises OSError: as `open_regular`; ValueError: there are more bytes than that."""
    with open_regular(path) as file:
        payload = file.read(most_bytes + 1)
    if len(payload) > most_bytes:
        raise ValueError(f"it holds more than {most_bytes / 1e6:.0f} MB")
    return payload


def damage_of(path: Path, error: Exception) -> str:
    """What reading a damaged file raised, or that it is empty; it may be gone by now."""
    with suppress(OSError):
        if not path.stat().st_size:
            return "it is empty"
    return str(error)


def first_bytes(path: Path, number: int) -> bytes:
    """The beginning of a file, unpacked if it is gzipped; empty if it cannot be read, which is told later."""
    with suppress(OSError, EOFError, ValueError, zlib.error), open_unpacked(path) as file:
        return file.read1(number)
    return b""


def is_gzip(path: Path) -> bool:
    """Whether a file begins as gzip does. Raises OSError: as `open_regular`."""
    with open_regular(path) as file:
        return file.read(2) == _GZIP


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


def read_json(text: str | bytes, *, parse_float: Callable[[str], object] = float) -> object:
    """The value of a JSON text; ``parse_float`` makes numbers with a point of their digits.

    Python's own reader takes the last of two equal keys, and numbers that JSON does not have.

    Raises ValueError: it is no JSON or no UTF-8, is nested too deeply, has a key twice, a number that is none
    (NaN, Infinity), or one of thousands of digits.
    """
    try:
        if isinstance(text, str):
            return json.loads(text, object_pairs_hook=once, parse_constant=_refuse, parse_float=parse_float)
        value: object = _decoder(parse_float).decode(text.decode(json.detect_encoding(text), "surrogatepass"))
        return value
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8 (byte {error.start + 1:,})") from None


@cache
def _decoder(parse_float: Callable[[str], object]) -> json.JSONDecoder:
    """One for all lines of a file, of bytes: `json.loads` would make one for each."""
    return json.JSONDecoder(object_pairs_hook=once, parse_constant=_refuse, parse_float=parse_float)


class RepeatedNameError(ValueError):
    """A key of an object, or a column of a table, stands twice: readers would disagree which one counts."""


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of these members. Raises RepeatedNameError: two have the same name."""
    values = dict(pairs)
    if len(values) != len(pairs):
        check_once("key", [name for name, _ in pairs])
    return values


def check_once(kind: str, names: Sequence[str]) -> None:
    """Refuse a name that stands twice; empty ones are none. Raises RepeatedNameError: names it."""
    for name, number in Counter(filter(None, names)).items():
        if number > 1:
            raise RepeatedNameError(f"the {kind} {name[:40]!r} stands twice")


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} is no number")


# Large JSON documents piece by piece: the long list of one (operators, events) is handed over element by
# element, so a hostile one is refused at its first wrong element. What is held is bounded: each element, and
# everything outside of the list together. ijson streams as fast, but takes no ``-Infinity``, which attention
# masks put into traces; msgspec checks while it parses, but holds the list.

MOST_CHARACTERS = 2**22
"""Of one element, and of all else. The decoder makes up to 30 bytes of a character."""

_PIECE = 2**16
_WHITE = re.compile(r"[ \t\n\r]*")
# What is cut off is wrong near its end ("-Infinit"), or where a string begins that does not end.
_LONGEST_TOKEN = 16
_UNENDED = "Unterminated string"
_DECODER = json.JSONDecoder(object_pairs_hook=once)


def read_members(text: TextIO, *, streamed: str) -> Iterator[tuple[str, object]]:
    """Names and values of a JSON object in the order of the document.

    The value of ``streamed`` is an iterator over its elements if it is a list; it is to be used before the
    next member is asked for. A document that is a list counts as that one member, any other has none.

    Raises ValueError: no JSON, nested too deeply, a name that stands twice, or a part that is too large.
    """
    window = _Window(text)
    if (sign := window.peek()) == "{":
        yield from _members(window, streamed)
    elif sign == "[":
        yield from _streamed(window, streamed)
    else:
        window.value()
    if window.peek():
        raise ValueError(f"there is more after its end, at character {window.position}")


def _members(window: _Window, streamed: str) -> Iterator[tuple[str, object]]:
    names: set[str] = set()
    num_kept = 0
    for begin in window.items("}"):
        name = window.name()
        if name in names:
            raise ValueError(f"{name[:40]!r} stands twice")
        names.add(name)
        if name == streamed and window.peek() == "[":
            yield from _streamed(window, name)
            continue
        yield name, window.value()
        num_kept += window.position - begin
        if num_kept > MOST_CHARACTERS:
            raise ValueError(_TOO_LARGE)


def _streamed(window: _Window, name: str) -> Iterator[tuple[str, object]]:
    elements = (window.value() for _ in window.items("]"))
    yield name, elements
    for _ in elements:
        pass


_TOO_LARGE = f"one part of it holds more than {MOST_CHARACTERS / 1e6:.0f} million characters"


class _Window:
    """The part of a text that is being looked at."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._buffer = ""
        self._at = 0
        self._dropped = 0
        self._has_ended = False

    @property
    def position(self) -> int:
        return self._dropped + self._at

    def peek(self) -> str:
        """The next character that is no white space, empty at the end."""
        while True:
            match = _WHITE.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._has_ended:
                return ""
            self._read()

    def items(self, close: str) -> Iterator[int]:
        """Position of each item of the list or object that begins here; the caller reads the item."""
        self._at += 1
        if self.peek() == close:
            self._at += 1
            return
        while True:
            self.peek()
            yield self.position
            sign = self.peek()
            if sign not in {",", close}:
                raise ValueError(f"',' or '{close}' is missing at character {self.position}")
            self._at += 1
            if sign == close:
                return

    def name(self) -> str:
        """The name of a member, with the colon after it."""
        name = self.value() if self.peek() == '"' else None
        if name is None or self.peek() != ":":
            raise ValueError(f"no member of an object at character {self.position}")
        self._at += 1
        return str(name)

    def value(self) -> object:
        """The value that begins here."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                is_near_end = error.pos > len(self._buffer) - _LONGEST_TOKEN or error.msg.startswith(_UNENDED)
                if not (is_near_end and not self._has_ended):
                    raise ValueError(f"{error.msg} at character {self._dropped + error.pos}") from None
            except RepeatedNameError as error:
                raise ValueError(f"{error} in what begins at character {self.position}") from None
            except ValueError:
                raise ValueError(f"a number of too many digits after character {self.position}") from None
            except RecursionError:
                raise ValueError(f"nested too deeply at character {self.position}") from None
            else:
                # A number may go on: "1." ends before its point.
                if end + _LONGEST_TOKEN < len(self._buffer) or self._has_ended:
                    self._at = end
                    return value
            if len(self._buffer) - self._at > MOST_CHARACTERS + _LONGEST_TOKEN:
                raise ValueError(_TOO_LARGE)
            self._read()

    def _read(self) -> None:
        """Drop what was read, and double what was not."""
        rest = self._buffer[self._at :]
        most = MOST_CHARACTERS + _LONGEST_TOKEN + 2 - len(rest)
        piece = self._text.read(min(max(_PIECE, len(rest)), most))
        self._has_ended = not piece
        self._dropped += self._at
        self._buffer, self._at = rest + piece, 0
