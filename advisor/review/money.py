"""Money that adds up: exact sums, and cents of parts that make the cents of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

NOTHING = Decimal(0)
_CENT = Decimal("0.01")


def exact(usd: float) -> Decimal:
    """The number that a person or a cloud wrote, of which the database keeps the nearest double.

    >>> exact(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(usd))


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 of nothing."""
    return sum(amounts, NOTHING)


def in_cents(usd: Decimal) -> Decimal:
    """To the nearest cent."""
    return usd.quantize(_CENT, ROUND_HALF_EVEN)


def cents_of(parts: Sequence[Decimal]) -> tuple[Decimal, ...]:
    """Parts in whole cents that add up to their sum in cents, each within a cent of itself.

    What is left of the whole goes to those that lost most (the method of largest remainders).

    >>> cents_of([Decimal("0.335"), Decimal("0.335"), Decimal("0.33")])
    (Decimal('0.34'), Decimal('0.33'), Decimal('0.33'))
    """
    floors = [part.quantize(_CENT, ROUND_FLOOR) for part in parts]
    num_left = int((in_cents(total(parts)) - total(floors)) / _CENT)
    by_loss = sorted(range(len(parts)), key=lambda place: floors[place] - parts[place])
    raised = frozenset(by_loss[:num_left])
    return tuple(floor + _CENT if place in raised else floor for place, floor in enumerate(floors))
