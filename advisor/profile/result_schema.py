"""A result file is checked in form before anything else looks at it: a script can write one, too.

The check is made from the types of ``payload/protocol.py``, and is stricter than they look: no count is
negative, no time infinite, no name endless. The parser stops at 200 levels, and at the first fault in a list;
``trace_checks`` looks at the numbers.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict, is_typeddict

from advisor.payload.protocol import Length, Result

# A million unknown fields would be a million faults; nobody looks at them.
_CONFIG = ConfigDict(strict=True, extra="allow")
_COUNT = Annotated[int, Field(ge=0)]
_SECONDS = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Of a mapping each value would be a fault of its own; ``trace_checks`` stops at the first.
_UNCHECKED = dict[str, object]
_Hint = Any  # a type as a value, which the type system has no name for


@cache
def result_adapter() -> TypeAdapter[Result]:
    """Made once; that takes some milliseconds."""
    return TypeAdapter(_strict(Result))


def _strict(hint: _Hint) -> _Hint:
    """The type that pydantic checks for a type of the protocol."""
    if is_typeddict(hint):
        return _strict_fields(hint)
    if hint in (int, float):
        return _COUNT if hint is int else _SECONDS
    origin: object = get_origin(hint)
    arguments = get_args(hint)
    if origin is dict:
        return _UNCHECKED
    if origin is list:
        # One fault is enough: a million would take gigabytes to tell.
        return Annotated[list[_strict(arguments[0])], Field(fail_fast=True)]  # type: ignore[misc]
    if origin is Annotated:
        bounds: Length = arguments[1]
        return Annotated[_strict(arguments[0]), Field(min_length=bounds.least, max_length=bounds.most)]
    if origin in (Union, types.UnionType):
        return Union[tuple(_strict(argument) for argument in arguments)]  # noqa: UP007
    return hint


@cache
def _strict_fields(cls: _Hint) -> _Hint:
    """A TypedDict like this one; pydantic takes those of typing_extensions alone before Python 3.12."""
    fields = {
        name: (Required if name in cls.__required_keys__ else NotRequired)[_strict(hint)]
        for name, hint in get_type_hints(cls, include_extras=True).items()
    }
    make: _Hint = TypedDict
    made = make(cls.__name__, fields)
    made.__pydantic_config__ = _CONFIG
    return made
