"""What repeats in a trace: equal operators as one, their columns, and the blocks of a model.

What is worked out for a sequence of operators is kept for the next GPU it is asked for, found by the
sequence's identity: comparing thousands of operators would cost more than it saves.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from advisor.core.iterables import grouped
from advisor.core.values import Flow, GpuSpec, Op, Phase, Precision, Trace
from advisor.operators.family import Family, Tf32Flag, base_name, wanted_rate
from advisor.operators.registry import family_of, is_known
from advisor.operators.work import tensor_bytes


class Same(int):
    """The identity of a sequence of operators, which it keeps, so that no other sequence gets it."""

    ops: Sequence[Op]

    def __new__(cls, ops: Sequence[Op]) -> "Same":  # noqa: D102
        same = super().__new__(cls, id(ops))
        same.ops = ops
        return same


F = TypeVar("F", bound=Callable[..., Any])


def kept(most: int) -> Callable[[F], F]:
    """Keep what a function makes of operators, for the last so many sequences and other arguments."""

    def decorated(make: F) -> F:
        of = lru_cache(maxsize=most)(lambda same, *others, **named: make(same.ops, *others, **named))

        @wraps(make)
        def found(ops: Sequence[Op], *others: Any, **named: Any) -> Any:
            return of(Same(ops), *others, **named)

        return cast(F, found)

    return decorated


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


@kept(8)
def asked_rates(ops: Sequence[Op], precision: Precision) -> tuple[tuple[str, Family], ...]:
    """The rate that each operator asks for, and its family."""
    pairs = ((op, family_of(op)) for op in ops)
    return tuple((wanted_rate(op, family, precision), family) for op, family in pairs)


def in_fp32(ops: Sequence[Op], precision: Precision, switch: Tf32Flag, gpu: GpuSpec) -> Precision | None:
    """The precision with a switch of TF32 off; None where no operator asks for another rate of the GPU then.

    Libraries take the faster kernel, so predictions of both are compared: of each product the lesser time
    counts (`learned.learned_times`); of convolutions the lesser step (`methods.op_times`), since of each call
    it would be the time of the luckier of two predictions.
    """
    if "tf32" not in gpu.tensor_flops_per_s:
        return None
    is_matmul = switch is Tf32Flag.MATMUL
    off = replace(precision, tf32_matmul=False) if is_matmul else replace(precision, tf32_cudnn=False)
    return None if asked_rates(ops, precision) == asked_rates(ops, off) else off


@kept(4)
def merged(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operators with equal ones joined, their counts added; the first of each keeps its place."""
    calls: dict[int, int] = {}
    for op in ops:
        calls[id(op)] = calls.get(id(op), 0) + op.count
    members = grouped({id(op): op for op in ops}.values(), _key)
    if len(members) == len(ops):
        return tuple(ops)
    return tuple(_joined(equal, calls) for equal in members.values())


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


@kept(2)
def shared(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operators, equal ones as one object, so that what is made of each can be kept by its identity."""
    first: dict[tuple[object, ...], Op] = {}
    objects = {id(op): op for op in ops}
    equal = {each: first.setdefault((op.count, *_key(op)), op) for each, op in objects.items()}
    return tuple([equal[id(op)] for op in ops])


def _key(op: Op) -> tuple[object, ...]:
    attributes = tuple(sorted(op.attributes.items()))
    work = (op.flops, op.bytes, op.measured_s)
    return (op.name, op.phase, op.inputs, op.outputs, attributes, op.kernels, *work)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpColumns:
    """N operators, a column for each fact."""

    ops: tuple[Op, ...]
    families: tuple[Family, ...]
    words: tuple[str, ...]
    """Distinct words of the families."""
    word_index: NDArray[np.int64]
    """Which of them each has, [N]."""
    names: tuple[str, ...]
    """Distinct base names."""
    name_index: NDArray[np.int64]
    """Which of them each has, [N]."""
    counts: NDArray[np.float64]
    """Calls of each, [N]."""
    measured_s: NDArray[np.float64]
    """Of one call on the GPU of the profile, [N]; NaN where it was not measured."""
    is_backward: NDArray[np.bool_]
    is_optimizer: NDArray[np.bool_]
    custom: tuple[str, ...]
    """Base names that no PyTorch release defines, sorted."""


@kept(4)
def columns_of(ops: Sequence[Op]) -> OpColumns:
    """The operators' columns, kept for the next GPU they are asked for."""
    families = tuple(map(family_of, ops))
    words, word_index = _distinct([family.word for family in families])
    names, name_index = _distinct([base_name(op.name) for op in ops])
    return OpColumns(
        ops=tuple(ops),
        families=families,
        words=words,
        word_index=word_index,
        names=names,
        name_index=name_index,
        counts=np.array([float(op.count) for op in ops]),
        measured_s=np.array([math.nan if op.measured_s is None else op.measured_s for op in ops]),
        is_backward=np.array([op.phase is Phase.BACKWARD for op in ops]),
        is_optimizer=np.array([op.phase is Phase.OPTIMIZER for op in ops]),
        custom=tuple(sorted({base_name(op.name) for op in ops if not is_known(op)})),
    )


def _distinct(values: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    place = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return tuple(place), np.array([place[value] for value in values])


# A transformer calls the same products in each of its layers, and adds what they give to a stream of one
# shape, which is all that checkpointing keeps of a layer. A model without such a pattern is taken as a
# chain of its products, cut into about the square root of their number of segments (Chen et al., "Training
# deep nets with sublinear memory cost", 2016).

# Where less of the products' work repeats so often, the model is taken as a chain.
_LEAST_SHARE = 0.8
_LEAST_BLOCKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The repeated part of a model."""

    num: int
    """How often it repeats; segments of a chain where nothing does."""
    boundary_bytes: float
    """What passes from one to the next, for one pass of the profiled batch."""
    outside_share: float
    """Of what the forward pass makes, that of other parts, such as the head."""
    repeats: bool = True
    """False for the segments of a chain."""


def blocks_of(trace: Trace) -> Blocks:
    """The blocks of the model that a trace is of."""
    return _blocks_of(trace.ops, trace.accumulation)


@kept(8)
def _blocks_of(ops: Sequence[Op], passes: int) -> Blocks:
    ops = [op for op in ops if op.phase is Phase.FORWARD]
    products = [op for op in ops if family_of(op).compute.tensor_cores]
    # The largest number of times that nearly all work of the products repeats.
    total_flops = sum(op.flops * op.count for op in products)
    for num in sorted({op.count // passes for op in products}, reverse=True):
        same_flops = sum(op.flops * op.count for op in products if op.count // passes >= num)
        if num >= _LEAST_BLOCKS and same_flops >= _LEAST_SHARE * total_flops:
            break
    else:  # a chain of them
        links = sum(op.count for op in products) // passes
        mean_bytes = made_bytes(products) / passes / links if links else 0.0
        segments = max(round(math.sqrt(links)), 1)
        return Blocks(num=segments, boundary_bytes=mean_bytes, outside_share=0.0, repeats=False)
    inside = [op for op in ops if op.count // passes >= num]
    total = made_bytes(ops)
    outside_share = (total - made_bytes(inside)) / total if total else 0.0
    return Blocks(num=num, boundary_bytes=_stream_bytes(inside), outside_share=outside_share)


def _stream_bytes(ops: Sequence[Op]) -> float:
    """What blocks add to: the largest sum of two alike, or else the smallest that a product gives."""
    sums = (op for op in ops if base_name(op.name) in ("add", "add_") and len(op.inputs) > 1)
    alike = [op for op in sums if len({tensor.shape for tensor in (*op.inputs, *op.outputs)}) == 1]
    if alike:
        return max(tensor_bytes(op.outputs[0]) for op in alike)
    products = [op for op in ops if family_of(op).compute.tensor_cores]
    return min((tensor_bytes(op.outputs[0]) for op in products if op.outputs), default=0)


def made_bytes(ops: Iterable[Op]) -> float:
    """Bytes of what operators give."""
    return sum(op.count * sum(map(tensor_bytes, op.outputs)) for op in ops)
