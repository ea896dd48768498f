"""Files that people write by hand: read with a size limit, YAML strictly, faults in words."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import ErrorDetails

from advisor.core.errors import ConfigError
from advisor.formats.foreign_files import read_plain, shown

MAX_FILE_BYTES = 1_000_000
MOST_VALUES = 5_000
"""Keys and values of a YAML file, unless it may hold more: to name near matches takes 0.2 ms for each."""

Place = tuple[str | int, ...]
"""Keys and list indices that lead from the top of a document to a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """What a YAML file holds, and in which line (from 1) each key and list entry stands."""

    value: object  # whatever YAML can say
    lines: Mapping[Place, int]

    def at(self, keys: Iterable[str | int]) -> object:
        """What stands behind these keys, which must be in the document."""
        value = self.value
        for key in keys:
            value = value[key] if isinstance(value, dict) else None
        return value

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest one around it."""
        around = (place[:end] for end in range(len(place), 0, -1))
        return next((self.lines[part] for part in around if part in self.lines), 1)


def at_home(path: str | Path) -> Path:
    """A path with ``~`` or ``~user`` in full; one of a user who is not there stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib's raises where there is no such user


def read_text(path: Path, *, kind: str) -> str:
    """The text of a file, a byte order mark left out.

    Raises ConfigError: unreadable, not UTF-8 or too large.
    """
    try:
        payload = read_plain(path, most_bytes=MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is larger than 1 MB: that is no {kind}.") from error
    return decoded(payload, place=repr(str(path)))


def read_document(path: Path, *, kind: str, advice: str, most_values: int = MOST_VALUES) -> YamlDocument:
    """A YAML file by ``safe_load``; duplicate keys are errors, aliases are refused (YAML bombs).

    ``kind`` is as in `read_text`, ``most_values`` the keys and values that it may hold.

    Raises ConfigError: unreadable, too large or malformed, with the line.
    """
    text = read_text(path, kind=kind)
    return parse_document(text, place=repr(str(path)), kind=kind, advice=advice, most_values=most_values)


def decoded(payload: bytes, *, place: str) -> str:
    """The text of a file's content. Raises ConfigError: not UTF-8."""
    try:
        return payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"cannot read {place}: it is no text in UTF-8 (byte {error.start + 1:,}). Save it as UTF-8."
        ) from error


def parse_document(
    text: str, *, place: str, kind: str, advice: str, most_values: int = MOST_VALUES
) -> YamlDocument:
    """YAML as strictly as `read_document`; ``place`` says in messages where it stands.

    Raises ConfigError: malformed or nested too deeply; the text, which may hold a password, is not shown.
    """
    # PyYAML takes 40 ms to import, and most users have no such file.
    from advisor.formats import strict_yaml

    try:
        value, lines = strict_yaml.read(text, most_values)
        return YamlDocument(value=value, lines=lines)
    except RecursionError as error:
        raise ConfigError(f"{place} is nested too deeply for a {kind}.") from error
    except (strict_yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-13-01
        raise ConfigError(f"{place} is not valid YAML: {strict_yaml.in_words(error)}. {advice}") from None
    except strict_yaml.FAULTS as error:
        # PyYAML trusts explicit tags: of !!bool it looks up whatever text follows.
        raise ConfigError(
            f"{place} is not valid YAML: a tag such as !!bool does not fit its value. {advice}"
        ) from error


def fault_in_words(item: ErrorDetails, *, quotes_value: bool = True) -> str:
    """One of pydantic's errors as a message that names the value: ``"... greater than 0; got -1."``."""
    message = item["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list, such as [a, b]")
    message = message.replace("Input should", "it must", 1)
    unquoted = item["type"] in {"int_type", "float_type"} and isinstance(item["input"], str)
    hint = " (a number is written without quotes)" if unquoted else ""
    return f"{message}{hint}; got {shown(item['input'])}." if quotes_value else f"{message}{hint}."
