"""YAML as PyYAML reads it safely, less aliases, keys that stand twice and numbers that are never meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from typing import cast

import yaml
from yaml import YAMLError as YAMLError

from advisor.formats.foreign_files import shown

_MOST_DIGITS = 1000
_NUMBER_FORMS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0b[01_]+|0x[0-9a-fA-F_]+)\Z"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
_SURROGATE = re.compile("[\ud800-\udfff]")
FAULTS = (ValueError, RecursionError, LookupError, AttributeError, TypeError, OverflowError)
_Place = tuple[str | int, ...]
# Of tabs, directives, tags, complex keys, marks of byte order, and comments right behind the mark of a block,
# libyaml takes more than PyYAML does.
_READ_OTHERWISE = re.compile("[\t%!?\ufeff]|[|>][-+0-9]*#")


def in_words(error: Exception) -> str:
    """The problem and its place, without the piece of text that PyYAML quotes."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return where + " ".join(f"{error.context or ''} {error.problem or ''}".split())


def read(text: str, most_values: int) -> tuple[object, Mapping[_Place, int]]:
    """By libyaml where that reads the same; what is wrong with a text is said in PyYAML's words."""
    if yaml.__with_libyaml__ and not _READ_OTHERWISE.search(text):
        with suppress(yaml.YAMLError, *FAULTS):
            return _document(_FastLoader(text, most_values))
    return _document(_StrictLoader(text, most_values))


def _document(loader: _Strict) -> tuple[object, Mapping[_Place, int]]:
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        return loader.construct_document(node), dict(_lines(node, ()))
    finally:
        loader.dispose()


def _lines(node: yaml.Node, place: _Place) -> Iterator[tuple[_Place, int]]:
    if isinstance(node, yaml.MappingNode):
        for key_node, child in node.value:
            yield (*place, str(key_node.value)), key_node.start_mark.line + 1
            yield from _lines(child, (*place, str(key_node.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield (*place, index), child.start_mark.line + 1
            yield from _lines(child, (*place, index))


class _Strict(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """A safe loader without aliases and without silently overwritten keys; a subclass parses."""

    # Less YAML 1.1's numbers of base 60 (1:30 is 90) and of base 8 (010 is 8), which are never meant: such a
    # word stays a text, and a text is refused where a number belongs.
    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base has it
        letter: [(tag, _NUMBER_FORMS.get(tag, form)) for tag, form in forms]
        for letter, forms in yaml.resolver.Resolver.yaml_implicit_resolvers.items()
    }
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
        if isinstance(node, yaml.ScalarNode) and len(node.value) > _MOST_DIGITS and node.tag in _NUMBER_FORMS:
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
