"""JSON that somebody else wrote, as one value: nothing stands twice, and nothing is no JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NoReturn


def read_json(text: str | bytes, *, parse_float: Callable[[str], object] = float) -> object:
    """The value of a JSON text; ``parse_float`` makes numbers with a point of their digits.

    Python's own reader takes the last of two equal keys, and numbers that JSON does not have.

    Raises:
        ValueError: it is no JSON or no UTF-8, is nested too deeply, has a key twice, a number that is none
            (NaN, Infinity), or one of thousands of digits.
    """
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_refuse, parse_float=parse_float)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8 (byte {error.start + 1:,})") from None


class RepeatedNameError(ValueError):
    """A key of an object, or a column of a table, stands twice: readers would disagree which one counts."""


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of these members.

    Raises:
        RepeatedNameError: two have the same name.
    """
    values = dict(pairs)
    if len(values) != len(pairs):
        check_once("key", [name for name, _ in pairs])
    return values


def check_once(kind: str, names: Sequence[str]) -> None:
    """Refuse a name that stands twice; empty ones are none.

    Raises:
        RepeatedNameError: names it.
    """
    for name, number in Counter(filter(None, names)).items():
        if number > 1:
            raise RepeatedNameError(f"the {kind} {name[:40]!r} stands twice")


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} is no number")
