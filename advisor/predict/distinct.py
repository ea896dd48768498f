"""Equal operators as one: a trace may list thousands of calls of a few hundred shapes.

What is worked out for a sequence of operators is kept for the next GPU it is asked for, found by the
sequence's identity: comparing thousands of operators would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from advisor.core.values import Flow, Op, Precision, Trace
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


class SameTrace:
    """A trace that equals another of the same sequence of operators, precision, memory and batch."""

    __slots__ = ("_facts", "trace")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._facts = Same(trace.ops), trace.precision, trace.memory, trace.batch_size, trace.accumulation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTrace) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)


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
    calls: dict[int, int] = {}
    for op in same.ops:
        calls[id(op)] = calls.get(id(op), 0) + op.count
    members: dict[tuple[object, ...], list[Op]] = {}
    for op in {id(op): op for op in same.ops}.values():
        members.setdefault(_key(op), []).append(op)
    if len(members) == len(same.ops):
        return tuple(same.ops)
    return tuple(_joined(ops, calls) for ops in members.values())


def _joined(ops: Sequence[Op], calls: Mapping[int, int]) -> Op:
    """Equal operators as one, with what is known of all their operands, or nothing."""
    count = sum(calls[id(op)] for op in ops)
    if count == ops[0].count:
        return ops[0]
    known: dict[Flow, tuple[int, int]] = {}
    for op in ops if all(op.flows for op in ops) else ():
        times = calls[id(op)] // op.count
        for flow in op.flows:
            before = known.get(alike := replace(flow, count=0, new_parameters=0), (0, 0))
            known[alike] = before[0] + times * flow.count, before[1] + times * flow.new_parameters
    flows = (replace(flow, count=n, new_parameters=new) for flow, (n, new) in known.items())
    return replace(ops[0], count=count, flows=tuple(flows))


def shared(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operators, equal ones as one object, so that what is made of each can be kept by its identity."""
    return _shared(Same(ops))


@lru_cache(maxsize=2)
def _shared(same: Same) -> tuple[Op, ...]:
    first: dict[tuple[object, ...], Op] = {}
    objects = {id(op): op for op in same.ops}
    equal = {each: first.setdefault((op.count, *_key(op)), op) for each, op in objects.items()}
    return tuple([equal[id(op)] for op in same.ops])


def _key(op: Op) -> tuple[object, ...]:
    attributes = tuple(sorted(op.attributes.items()))
    work = (op.flops, op.bytes, op.measured_s)
    return (op.name, op.phase, op.inputs, op.outputs, attributes, op.kernels, *work)
