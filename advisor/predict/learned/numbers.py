"""An operator call as numbers a network reads: what its family says of it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.values import Op
from advisor.operators.family import base_name
from advisor.operators.registry import rows


@dataclass(frozen=True, slots=True)
class Shape:
    """Which network an operator belongs to, and what that network is given of it."""

    network: str
    values: tuple[float, ...]


def shape_of(op: Op) -> Shape | None:
    """The numbers of one call.

    None for an operator that no network knows, for empty tensors, and where a profiler left out shapes.
    """
    learned = rows().network_of_name.get(base_name(op.name))
    if learned is None or not op.bytes or not op.inputs or not all(op.inputs[0].shape):
        return None
    try:
        values = learned.features(op)
    except (IndexError, KeyError, ValueError, TypeError):  # not recorded, or no sizes
        return None
    return None if values is None else Shape(learned.name, values)
