"""Files that people write by hand: read with a size limit, YAML strictly, faults in words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml
from pydantic_core import ErrorDetails

from advisor.core.errors import ConfigError
from advisor.formats.foreign_files import read_plain

MAX_FILE_BYTES = 1_000_000
MOST_VALUES = 5_000
"""Keys and values of a YAML file, unless it may hold more: to name near matches takes 0.2 ms for each."""

_MOST_DIGITS = 1000
_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_NUMBER_FORMS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0b[01_]+|0x[0-9a-fA-F_]+)\Z"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_VALUE = 200
_FAULTS = (ValueError, RecursionError, LookupError, AttributeError, TypeError, OverflowError)
# Of tabs, directives, tags, complex keys, marks of byte order, and comments right behind the mark of a block,
# libyaml takes more than PyYAML does.
_READ_OTHERWISE = re.compile("[\t%!?\ufeff]|[|>][-+0-9]*#")
Place = tuple[str | int, ...]
"""Keys and list indices that lead from the top of a document to a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
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

    Args:
        kind: what it should be, for messages, such as ``"settings file"``.

    Raises ConfigError: unreadable, not UTF-8 or too large.
    """
    try:
        payload = read_plain(path, most_bytes=MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is larger than 1 MB: that is no {kind}.") from error
    return decoded(payload, place=repr(str(path)))


def read_yaml(path: Path, *, kind: str, advice: str, most_values: int = MOST_VALUES) -> object:
    """A YAML file by ``safe_load``; duplicate keys are errors, aliases are refused (YAML bombs).

    Args:
        kind: as in `read_text`.
        most_values: keys and values that it may hold.

    Raises ConfigError: unreadable, too large or malformed, with the line.
    """
    return read_document(path, kind=kind, advice=advice, most_values=most_values).value


def read_document(path: Path, *, kind: str, advice: str, most_values: int = MOST_VALUES) -> Document:
    """As `read_yaml`, with the line of each value."""
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
) -> Document:
    """YAML as strictly as `read_yaml`, whatever it comes from.

    Args:
        place: where it stands, for messages: a path in quotes, or a variable.
        kind: as in `read_text`.
        most_values: as in `read_yaml`.

    Raises:
        ConfigError: malformed or nested too deeply; the text itself, which may hold a password, is not shown.
    """
    try:
        return _read(text, most_values)
    except RecursionError as error:
        raise ConfigError(f"{place} is nested too deeply for a {kind}.") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-13-01
        raise ConfigError(f"{place} is not valid YAML: {_in_words(error)}. {advice}") from None
    except _FAULTS as error:
        # PyYAML trusts explicit tags: of !!bool it looks up whatever text follows.
        raise ConfigError(
            f"{place} is not valid YAML: a tag such as !!bool does not fit its value. {advice}"
        ) from error


def _in_words(error: Exception) -> str:
    """The problem and its place, without the piece of text that PyYAML quotes."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return where + " ".join(f"{error.context or ''} {error.problem or ''}".split())


def shown(value: object) -> str:
    """A value as a message names it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def fault_in_words(item: ErrorDetails, *, quotes_value: bool = True) -> str:
    """One of pydantic's errors as a message that names the value: ``"... greater than 0; got -1."``."""
    message = item["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list, such as [a, b]")
    message = message.replace("Input should", "it must", 1)
    unquoted = item["type"] in {"int_type", "float_type"} and isinstance(item["input"], str)
    hint = " (a number is written without quotes)" if unquoted else ""
    return f"{message}{hint}; got {shown(item['input'])}." if quotes_value else f"{message}{hint}."


def _read(text: str, most_values: int) -> Document:
    """By libyaml where that reads the same; what is wrong with a text is said in PyYAML's words."""
    if yaml.__with_libyaml__ and not _READ_OTHERWISE.search(text):
        with suppress(yaml.YAMLError, *_FAULTS):
            return _document(_FastLoader(text, most_values))
    return _document(_StrictLoader(text, most_values))


def _document(loader: _Strict) -> Document:
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(value=None, lines={})
        value = loader.construct_document(node)
        return Document(value=value, lines=dict(_lines(node, ())))
    finally:
        loader.dispose()


def _lines(node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    if isinstance(node, yaml.MappingNode):
        for key_node, child in node.value:
            yield (*place, str(key_node.value)), key_node.start_mark.line + 1
            yield from _lines(child, (*place, str(key_node.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield (*place, index), child.start_mark.line + 1
            yield from _lines(child, (*place, index))


def _without_old_numbers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """What plain words mean, less YAML 1.1's numbers of base 60 (1:30 is 90) and of base 8 (010 is 8).

    These are never meant, so such a word stays a text, and a text is refused where a number belongs.
    """
    old = yaml.resolver.Resolver.yaml_implicit_resolvers
    return {
        letter: [(tag, _NUMBER_FORMS.get(tag, form)) for tag, form in forms] for letter, forms in old.items()
    }


class _Strict(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """A safe loader without aliases and without silently overwritten keys; a subclass parses."""

    yaml_implicit_resolvers = _without_old_numbers()
    check_event: Callable[..., bool]
    peek_event: Callable[[], yaml.Event]
    dispose: Callable[[], None]

    def __init__(self, most_values: int) -> None:
        yaml.composer.Composer.__init__(self)
        self._most_values = most_values
        self._num_values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            message = "aliases are not allowed (a text that begins with * is written in quotes)"
            raise self._refused(message, self.peek_event())
        self._num_values += 1
        if self._num_values > self._most_values:
            message = f"there are more than {self._most_values:,} keys and values"
            raise self._refused(message, self.peek_event())
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
            raise self._refused("an escape of half a character, such as \\ud800", node)
        # YAML 1.1 has numbers of base 60, whose reader takes minutes for a megabyte.
        if isinstance(node, yaml.ScalarNode) and len(node.value) > _MOST_DIGITS and node.tag in _NUMBERS:
            raise self._refused(f"a number of {len(node.value):,} digits", node)
        return node

    def _refused(self, message: str, where: yaml.Event | yaml.Node) -> yaml.composer.ComposerError:
        return yaml.composer.ComposerError(None, None, message, cast("yaml.Mark", where.start_mark))

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class says what is wrong with it
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {shown(key)} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


class _StrictLoader(_Strict, yaml.SafeLoader):
    """Parses in Python."""

    def __init__(self, text: str, most_values: int) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Strict.__init__(self, most_values)


if yaml.__with_libyaml__:

    class _FastLoader(_Strict, yaml.CSafeLoader):
        """Parses by libyaml, in a tenth of the time."""

        def __init__(self, text: str, most_values: int) -> None:
            yaml.CSafeLoader.__init__(self, text)
            _Strict.__init__(self, most_values)
