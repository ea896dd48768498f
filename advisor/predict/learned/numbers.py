"""An operator call as numbers a network reads: what its family says of it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.values import Op
from advisor.operators.family import Learned, base_name
from advisor.operators.registry import rows


@dataclass(frozen=True, slots=True)
class Shape:
    """Which network an operator belongs to, and what that network is given of it."""

    network: str
    values: tuple[float, ...]


def shape_of(op: Op, rate: str = "fp32") -> Shape | None:
    """The numbers of one call, for the first network that knows it at this rate.

    None for an operator that no network knows, for empty tensors, and where a profiler left out shapes.
    """
    for learned in rows().networks_of_name.get(base_name(op.name), ()):
        if learned.rates is None or rate in learned.rates:
            values = numbers_of(op, learned)
            return None if values is None else Shape(learned.name, values)
    return None


def numbers_of(op: Op, learned: Learned) -> tuple[float, ...] | None:
    """What a network that knows its name is given of a call; None where it cannot tell."""
    if not op.bytes or not op.inputs or not all(op.inputs[0].shape):
        return None
    try:
        return learned.features(op)
    except (IndexError, KeyError, ValueError, TypeError):  # not recorded, or no sizes
        return None
