"""Equal operators as one: a trace may list thousands of calls of a few hundred shapes.

What is worked out for a sequence of operators is kept for the next GPU it is asked for, found by the
sequence's identity: comparing thousands of operators would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from advisor.core.values import Op, Precision
from advisor.operators.family import Family
from advisor.operators.rates import wanted_rate
from advisor.operators.registry import family_of


class Same:
    """Operators in a sequence that equals no other one but itself."""

    __slots__ = ("ops",)

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.ops is other.ops

    def __hash__(self) -> int:
        return id(self.ops)


def asked_rates(ops: Sequence[Op], precision: Precision) -> tuple[tuple[str, Family], ...]:
    """The rate that each operator asks for, and its family."""
    return _asked_rates(Same(ops), precision)


@lru_cache(maxsize=8)
def _asked_rates(same: Same, precision: Precision) -> tuple[tuple[str, Family], ...]:
    families = map(family_of, same.ops)
    return tuple(
        (wanted_rate(op, family, precision), family) for op, family in zip(same.ops, families, strict=True)
    )


def merged(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operators with equal ones joined, their counts added; the first of each keeps its place."""
    return _merged(Same(ops))


@lru_cache(maxsize=4)
def _merged(same: Same) -> tuple[Op, ...]:
    counts: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], Op] = {}
    for op in same.ops:
        key = _key(op)
        counts[key] = counts.get(key, 0) + op.count
        first.setdefault(key, op)
    if len(first) == len(same.ops):
        return tuple(same.ops)
    return tuple(replace(op, count=counts[key]) for key, op in first.items())


def _key(op: Op) -> tuple[object, ...]:
    attributes = tuple(sorted(op.attributes.items()))
    work = (op.flops, op.bytes, op.measured_s)
    return (op.name, op.phase, op.inputs, op.outputs, attributes, op.kernels, *work)
