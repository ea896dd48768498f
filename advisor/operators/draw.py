"""Sizes of the grid: a low-discrepancy sequence, so that few cases cover much and more cases only add.

Source: Halton, "On the efficiency of certain quasi-random sequences of points in evaluating
multi-dimensional integrals", Numerische Mathematik 2, 1960; each sequence is shifted by a constant of its
own (Cranley and Patterson, "Randomization of number theoretic methods for multiple integration", 1976), so
that operators do not all get the same sizes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
T = TypeVar("T")


def radical_inverse(index: int, base: int) -> float:
    """The digits of ``index`` mirrored behind the point, 0..1.

    >>> [radical_inverse(i, 2) for i in range(4)]
    [0.0, 0.5, 0.25, 0.75]
    """
    inverse, digit_value = 0.0, 1.0 / base
    while index:
        index, digit = divmod(index, base)
        inverse += digit * digit_value
        digit_value /= base
    return inverse


class Draw:
    """The sizes of one case: each call takes the next dimension of the point.

    Args:
        name: whose sequence it is.
        index: which point of it, from 0.
    """

    def __init__(self, name: str, index: int) -> None:
        self._name = name
        self._index = index
        self._dimension = 0

    def fraction(self) -> float:
        """A number in [0, 1)."""
        dimension = self._dimension
        self._dimension += 1
        shift = zlib.crc32(f"{self._name} {dimension}".encode()) / 2**32
        return (radical_inverse(self._index + 1, _PRIMES[dimension]) + shift) % 1.0

    def choice(self, options: Sequence[T]) -> T:
        """One of the options, all equally often."""
        return options[int(self.fraction() * len(options))]

    def size(self, low: int, high: int, multiple: int = 1) -> int:
        """A multiple of ``multiple`` in ``low..high``, equally often in each octave (log-uniform)."""
        drawn: float = low * (high / low) ** self.fraction()
        return max(multiple, round(drawn / multiple) * multiple)


def shrunk(sizes: tuple[int, ...], fits: Callable[..., bool], least: int = 8) -> tuple[int, ...]:
    """The sizes, the largest halved until ``fits(*sizes)`` or none is above ``least``.

    >>> shrunk((64, 8), lambda rows, columns: rows * columns <= 128)
    (16, 8)
    """
    while not fits(*sizes) and max(sizes) > least:
        largest = sizes.index(max(sizes))
        sizes = (*sizes[:largest], max(least, sizes[largest] // 2), *sizes[largest + 1 :])
    return sizes
