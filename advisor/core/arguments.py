"""What Python callers hand in by mistake, told as errors of ours; types alone would not stop a notebook."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import cast, get_args

from advisor.core.errors import InputError


def check_kind(name: str, value: object, kind: type | UnionType, advice: str) -> None:
    """Refuse a value of another kind.

    Args:
        name: of the argument.
        value: what was handed in.
        kind: what it must be.
        advice: where to get one, a sentence without its full stop.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(value, kind):
        kinds = get_args(kind) or (kind,)
        wanted = " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
        raise InputError(f"{name} must be of type {wanted}, got {shortened(value)}: {advice}.")


def check_each(name: str, values: object, kind: type | UnionType, advice: str) -> None:
    """Refuse what is no list, tuple or the like of values of a kind.

    Raises:
        InputError: it is one alone, a text, a mapping or nothing; or one of them is of another kind.
    """
    if not isinstance(values, Collection) or isinstance(values, str | bytes | Mapping):
        raise InputError(f"{name} must be a list, got {shortened(values)}: {advice}.")
    for value in values:
        check_kind(f"each of {name}", value, kind, advice)


def check_count(name: str, value: object, *, most: float = math.inf) -> None:
    """Refuse what is no whole number from 1 to ``most``; numpy's integers are some, ``True`` is none.

    Raises:
        InputError: says what is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        allowed = "of at least 1" + ("" if most == math.inf else f" and at most {most:,}")
        raise InputError(f"{name} must be a whole number {allowed}, got {shortened(value)}.")


def check_counts(name: str, values: object, advice: str) -> None:
    """Refuse what is no list, tuple or the like of whole numbers of at least 1.

    Raises:
        InputError: as `check_each` and `check_count`.
    """
    check_each(name, values, object, advice)
    for value in cast("Collection[object]", values):
        check_count(f"each of {name}", value)


def check_number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> None:
    """Refuse what is no finite number, or too small or too large a one.

    Raises:
        InputError: says what is allowed.
    """
    if not (
        isinstance(value, Real)
        and math.isfinite(value)
        and above < float(value) <= most
        and least <= float(value)
    ):
        allowed = f" above {above:g}" if above > -math.inf else f" of at least {least:g}"
        up_to = "" if most == math.inf else f" and at most {most:,.15g}"
        raise InputError(f"{name} must be a finite number{allowed}{up_to}, got {shortened(value)}.")
