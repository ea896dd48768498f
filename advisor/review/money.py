"""Money that adds up: exact numbers and their sums. What is printed is rounded by ``report/sums``."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

NOTHING = Decimal(0)


def exact(usd: float) -> Decimal:
    """The number that a person or a cloud wrote, of which the database keeps the nearest double.

    >>> exact(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(usd))


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 of nothing."""
    return sum(amounts, NOTHING)
