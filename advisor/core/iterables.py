"""What the standard library's itertools lack."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def grouped(things: Iterable[T], key_of: Callable[[T], K]) -> dict[K, list[T]]:
    """Things by their key, keys and things in the order in which they come.

    >>> grouped([1, 2, 3], lambda number: number % 2)
    {1: [1, 3], 0: [2]}
    """
    groups: dict[K, list[T]] = {}
    for thing in things:
        groups.setdefault(key_of(thing), []).append(thing)
    return groups
