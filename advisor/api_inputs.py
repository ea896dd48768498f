"""What callers in Python give, as the requests and settings of the use cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import TYPE_CHECKING, get_args

from advisor.core.errors import InputError
from advisor.core.values import Trace
from advisor.service.listening import Listener
from advisor.service.traces import TraceRequest

if TYPE_CHECKING:
    from advisor.config.layers import Config

Source = str | PathLike[str] | Trace
"""A training script or a saved trace, or a Trace."""


def request_of(
    source: Source,
    arguments: Sequence[str],
    *,
    origin_gpu: str | None = None,
    pretended_gpu: str | None = None,
    world_size: int | None = None,
) -> TraceRequest:
    """What is to be profiled or read."""
    check_kind("source", source, str | PathLike | Trace, "the path of a script or of a saved trace")
    check_kind("origin_gpu", origin_gpu, str | None, "the name of one, such as 'L4'")
    check_kind("pretended_gpu", pretended_gpu, str | None, "the name of one, such as 'L4'")
    path = source if isinstance(source, Trace) else Path(source)
    return TraceRequest(
        source=path,
        arguments=texts("arguments", arguments),
        origin_gpu=origin_gpu,
        pretended_gpu=pretended_gpu,
        world_size=world_size,
    )


def changes(what_if: bool | str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of the changes to judge, ``all`` for True; none for False, and None stays None."""
    if what_if is None or isinstance(what_if, bool):
        return None if what_if is None else ("all",) * what_if
    return (what_if,) if isinstance(what_if, str) else texts("what_if", what_if)


def texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Several texts; one text by itself is refused, since its letters would count as texts."""
    check_each(name, values, str, "each text by itself, such as ['one', 'two']")
    return tuple(values)


def gpu_name(gpu: str) -> str:
    """The name of one, and of no list."""
    check_kind("gpu", gpu, str, "the name of one, such as 'L4'")
    return gpu


def cloud(given: Mapping[str, Sequence[str] | None]) -> dict[str, object]:
    """Settings of the clouds, by dotted name."""
    return {f"cloud.{name}": values for name, values in given.items()}


def config_of(given: Mapping[str, object], settings: Mapping[str, object] | None, hears: Listener) -> Config:
    """All layers, with what was given on top."""
    from advisor.config.layers import ARGUMENT, load_config
    from advisor.report.config_tables import refused_in_words

    named = {name: value for name, value in given.items() if value is not None}
    config = load_config({**(settings or {}), **named}, origin=ARGUMENT)
    hears.warn([*config.warnings, *map(refused_in_words, config.refused)])
    return config


def check_kind(name: str, value: object, kind: type | UnionType, advice: str) -> None:
    """Refuse a value of another kind.

    Args:
        kind: what it must be.
        advice: where to get one, a sentence without its full stop.

    Raises InputError: it is something else.
    """
    if not isinstance(value, kind):
        kinds = get_args(kind) or (kind,)
        wanted = " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
        raise InputError(f"{name} must be of type {wanted}, got {shortened(value)}: {advice}.")


def check_each(name: str, values: object, kind: type | UnionType, advice: str) -> None:
    """Refuse what is no list, tuple or the like of values of a kind.

    Raises InputError: it is one alone, a text, a mapping or nothing; or one of them is of another kind.
    """
    if not isinstance(values, Collection) or isinstance(values, str | bytes | Mapping):
        raise InputError(f"{name} must be a list, got {shortened(values)}: {advice}.")
    for value in values:
        check_kind(f"each of {name}", value, kind, advice)
