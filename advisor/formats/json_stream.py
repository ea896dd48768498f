"""Large JSON documents piece by piece, so that a hostile one is refused at its first wrong element.

The long list of a document (operators, events) is handed over element by element and never held as a whole.
What is held is bounded: each element, and everything outside of the list together.

Elements are read by the standard library's decoder. ijson streams as fast, but takes no ``-Infinity``, which
attention masks put into traces; msgspec checks while it parses, but holds the list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TextIO

from advisor.formats.strict_json import RepeatedNameError, once

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

    Raises:
        ValueError: no JSON, nested too deeply, a name that stands twice, or a part that is too large.
    """
    window = _Window(text)
    match window.peek():
        case "{":
            yield from _members(window, streamed)
        case "[":
            yield from _streamed(window, streamed)
        case _:
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
            raise _too_large()


def _streamed(window: _Window, name: str) -> Iterator[tuple[str, object]]:
    elements = (window.value() for _ in window.items("]"))
    yield name, elements
    for _ in elements:
        pass


def _too_large() -> ValueError:
    return ValueError(f"one part of it holds more than {MOST_CHARACTERS / 1e6:.0f} million characters")


class _Window:
    """The part of a text that is being looked at.

    Attributes:
        position: where it is in the whole text, in characters from 0.
    """

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
                if not self._may_be_cut_off(error):
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
                raise _too_large()
            self._read()

    def _may_be_cut_off(self, error: json.JSONDecodeError) -> bool:
        is_near_end = error.pos > len(self._buffer) - _LONGEST_TOKEN or error.msg.startswith(_UNENDED)
        return is_near_end and not self._has_ended

    def _read(self) -> None:
        """Drop what was read, and double what was not."""
        rest = self._buffer[self._at :]
        most = MOST_CHARACTERS + _LONGEST_TOKEN + 2 - len(rest)
        piece = self._text.read(min(max(_PIECE, len(rest)), most))
        self._has_ended = not piece
        self._dropped += self._at
        self._buffer, self._at = rest + piece, 0
