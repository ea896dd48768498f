"""JSON that somebody else wrote, as one value: nothing stands twice, and nothing is no JSON."""

from __future__ import annotations

import json
from typing import NoReturn


def read_json(text: str | bytes) -> object:
    """The value of a JSON text.

    Python's own reader takes the last of two equal keys, and numbers that JSON does not have.

    Raises:
        ValueError: it is no JSON or no UTF-8, is nested too deeply, has a key twice, a number that is none
            (NaN, Infinity), or one of thousands of digits.
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8 (byte {error.start + 1:,})") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"the key {name[:40]!r} stands twice")
        values[name] = value
    return values


def _refuse(number: str) -> NoReturn:
    raise ValueError(f"{number} is no number")
