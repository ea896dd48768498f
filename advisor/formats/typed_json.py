"""Values of a file as the types that their dataclass gives them: JSON can hold anything.

A field's type is all that is written of its layout. Unless `Bounds` says otherwise, a whole number is from 0
to what 64 bits hold, another one from 0 to a billion. A tuple is a list in a file, an enumeration a text.
"""

import reprlib
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType

from advisor.core.values import Bounds, Depth

T = typing.TypeVar("T")

_Hint = typing.Any  # a type as a value, which the type system has no name for
_Reader = Callable[[typing.Any], typing.Any]

# What a number may be of, and its bounds unless its field says otherwise.
_KINDS: dict[type, tuple[tuple[type, ...], Bounds]] = {
    int: ((int,), Bounds()),
    float: ((int, float), Bounds(0, 1e9)),
}
_MOST_SHOWN = 80
_MOST_LISTED = 1000


class WrongValueError(ValueError):
    """A value that its field cannot have; ``names`` go from the field to what it is a part of."""

    def __init__(self, value: object, why: str | None = None) -> None:
        self.names: list[str] = []
        self.why = why or f"is {reprlib.repr(value)}"

    def __str__(self) -> str:
        return f"{' of '.join(self.names) or 'a value'} {self.why}"

    def of(self, name: object) -> typing.Self:
        """The same of a part of what is called so; a name that cannot be shown is left out."""
        if isinstance(name, str) and name.isprintable():
            self.names.append(name[:_MOST_SHOWN])
        return self


def typed(kind: type[T], value: object) -> T:
    """A value of a file as a type; also a value of ours whose parts may be of any type.

    Raises WrongValueError: names the field and its value.
    """
    read: _Reader = reader_of(typing.cast("_Hint", kind))
    return typing.cast("T", read(value))


@cache
def reader_of(hint: _Hint) -> _Reader:
    """What makes a value of this type of one of a file, or raises `WrongValueError`."""
    origin: _Hint = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(arguments[0], arguments[1])
    if origin in (typing.Union, UnionType):
        readers = [reader_of(one) for one in arguments if one is not NoneType]
        return partial(_union, readers, NoneType in arguments)
    if origin is typing.Literal:
        return partial(_literal, arguments)
    if origin in (Sequence, list, tuple):
        if origin is tuple and arguments[1:] != (...,):
            return partial(_tuple, tuple(map(reader_of, arguments)))
        each = partial(_each, tuple if origin is tuple else list, reader_of(arguments[0]))
        return partial(_sized, each, Bounds(0, _MOST_LISTED)) if origin is Sequence else each
    if origin in (Mapping, dict):
        return partial(_mapping, reader_of(arguments[1]))
    if is_dataclass(hint) or typing.is_typeddict(hint):
        return _fields(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_member, hint)
    if hint in _KINDS:
        return _number(hint, _KINDS[hint][1])
    return partial(_instance, hint)


def _annotated(hint: _Hint, limit: typing.Any) -> _Reader:
    if isinstance(limit, Depth):
        return partial(_mapping, partial(_nested, limit.most))
    return _number(hint, limit) if hint in _KINDS else partial(_sized, reader_of(hint), limit)


def _sized(reader: _Reader, limit: typing.Any, value: object) -> object:
    read = reader(value)
    if not limit.least <= len(read) <= limit.most:
        raise WrongValueError(value)
    return read


def _number(hint: type, bounds: Bounds) -> _Reader:
    kinds, _ = _KINDS[hint]
    least, most = bounds

    def read(value: typing.Any) -> object:
        # No bool: 1 == True.
        if type(value) in kinds and least <= value <= most:
            return value
        raise WrongValueError(value)

    return read


def _instance(kind: _Hint, value: object) -> object:
    if not isinstance(value, kind):
        raise WrongValueError(value)
    return value


def _literal(allowed: tuple[object, ...], value: object) -> object:
    if value not in allowed:
        raise WrongValueError(value)
    return value


def _member(kind: type[Enum], value: object) -> object:
    try:
        return kind(value)
    except ValueError:
        raise WrongValueError(value) from None


def _union(readers: list[_Reader], may_be_none: bool, value: object) -> object:
    """As the first type that the value can be; the fault of the last one is reported."""
    if value is None and may_be_none:
        return None
    for reader in readers[:-1]:
        with suppress(WrongValueError):
            return reader(value)
    return readers[-1](value)


def _each(kind: type, reader: _Reader, value: typing.Any) -> object:
    if not isinstance(value, list | tuple):
        raise WrongValueError(value)
    return kind(map(reader, value))


def _tuple(readers: tuple[_Reader, ...], value: typing.Any) -> object:
    if not isinstance(value, list | tuple) or len(value) != len(readers):
        raise WrongValueError(value)
    return tuple(reader(item) for reader, item in zip(readers, value, strict=True))


def _mapping(reader: _Reader, value: typing.Any) -> object:
    if not isinstance(value, Mapping):
        raise WrongValueError(value)
    made = {}
    for name, one in value.items():
        try:
            made[name] = reader(one)
        except WrongValueError as wrong:
            raise wrong.of(name) from None
    return made


def _nested(depth: int, value: typing.Any) -> object:
    if isinstance(value, list | tuple):
        if depth == 0:
            raise WrongValueError(value, "is nested too deeply")
        return tuple(_nested(depth - 1, item) for item in value)
    return _instance(bool | int | float | str | NoneType, value)


def _fields(kind: _Hint) -> _Reader:
    hints = typing.get_type_hints(kind, include_extras=True)
    readers = {name: reader_of(one) for name, one in hints.items()}
    if is_dataclass(kind):
        defaults = {
            one.name for one in fields(kind) if (one.default, one.default_factory) != (MISSING, MISSING)
        }
        needed = frozenset(hints) - defaults
    else:
        needed = kind.__required_keys__

    def read(value: typing.Any) -> object:
        if not isinstance(value, dict):
            if not is_dataclass(value):
                raise WrongValueError(value)
            value = {name: getattr(value, name) for name in readers}
        made = {}
        for name, reader in readers.items():
            try:
                if name in value:
                    made[name] = reader(value[name])
                elif name in needed:
                    raise WrongValueError(None, "is missing")
            except WrongValueError as wrong:
                raise wrong.of(name).of(value.get("name")) from None
        return kind(**made)

    return read
