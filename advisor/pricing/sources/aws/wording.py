"""Words that the parts share."""

from __future__ import annotations

from collections.abc import Collection

_MOST = 6


def listed(names: Collection[str]) -> str:
    """The names in alphabetical order, the first few and a count of the others.

    >>> listed({"g7.2xlarge", "g3.4xlarge"})
    'g3.4xlarge, g7.2xlarge'
    """
    unique = sorted(set(names))
    rest = f" and {len(unique) - _MOST} more" if len(unique) > _MOST else ""
    return ", ".join(unique[:_MOST]) + rest


def counted(number: int, noun: str) -> str:
    """A count with its noun: ``"1 type"``, ``"3 types"``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
