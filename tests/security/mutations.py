"""Valid documents made hostile: values of other kinds, absurd numbers, lost and doubled keys, damage."""

import copy
import gzip
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Place = tuple[str | int, ...]

VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**63, -(2**63), 10**400, -0.5, 1e-300, 1e300, "", "1", "text", "-1",
    "\ud800", "\x1b[2J", "\u202e", "x" * 5000, "2026-13-45T99:99:99Z", "9" * 5000, [], [None], [[]], {},
    {"": {}}, [2**62] * 100, {"a": [1, {"b": None}]},
)  # fmt: skip
"""What a value is replaced by."""

RAW = (
    "1e999", "-1e999", "NaN", "-Infinity", "9" * 4400, "0.1e", "[" * 3000, '{"a":' * 3000, '"\\ud800"',
    '"\\x"', "tru", "/**/1", '{"a":1,"a":2}',
)  # fmt: skip
"""JSON that no value of ours is written as, right or wrong."""

_MARK = "put raw text here"


def places(value: Any, start: Place = ()) -> Iterator[Place]:
    """Where every value of a document is."""
    if start:
        yield start
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*start, key))


@st.composite
def documents(draw: st.DrawFn, whole: Any, most: int = 3) -> Any:
    """The document with up to so many changes at any places."""
    document = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, most))):
        spots = list(places(document))
        if spots:
            _change(draw, document, draw(st.sampled_from(spots)))
    return document


def _change(draw: st.DrawFn, document: Any, place: Place) -> None:
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    key = place[-1]
    match draw(st.sampled_from(["replace", "replace", "remove", "double", "rename"])):
        case "remove":
            del inner[key]
        case "double" if isinstance(inner, list):
            inner.extend([inner[key]] * 3)
        case "rename" if isinstance(inner, dict):
            inner[draw(st.sampled_from(["", "x", "-1", "NAME", "\ud800"]))] = inner.pop(key)
        case _:
            inner[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))


@st.composite
def json_bytes(draw: st.DrawFn, whole: Any) -> bytes:
    """The document changed and written as JSON, at times with a token in it that no document of ours has."""
    document = draw(documents(whole))
    raw = draw(st.none() | st.sampled_from(RAW))
    spots = list(places(document))
    if raw is None or not spots:
        return json.dumps(document).encode()
    place = draw(st.sampled_from(spots))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = _MARK
    return json.dumps(document).replace(f'"{_MARK}"', raw).encode()


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes with flips, holes, repetitions, cut off, or gzipped and then damaged."""
    payload = bytearray(gzip.compress(whole) if draw(st.booleans()) else whole)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(payload) - 1, 0)))
        length = draw(st.integers(1, 20))
        match draw(st.sampled_from(["flip", "cut", "hole", "repeat", "insert"])):
            case "flip" if payload:
                payload[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del payload[at:]
            case "hole":
                del payload[at : at + length]
            case "repeat":
                payload[at:at] = payload[at : at + length] * draw(st.integers(1, 50))
            case _:
                payload[at:at] = draw(st.binary(max_size=8))
    return bytes(payload)


def forms(whole: Any) -> st.SearchStrategy[bytes]:
    """A JSON document, changed where it has meaning or damaged where it has none."""
    return json_bytes(whole) | damaged(json.dumps(whole).encode())
