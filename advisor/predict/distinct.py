"""What repeats in a trace: equal operators as one, their columns, and the blocks of a model.

What is worked out for a sequence of operators is kept for the next GPU it is asked for, found by the
sequence's identity: comparing thousands of operators would cost more than it saves.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.iterables import grouped
from advisor.core.values import Flow, GpuSpec, Op, Phase, Precision, Trace
from advisor.operators.family import Family, Tf32Flag, base_name, wanted_rate
from advisor.operators.registry import family_of, is_known
from advisor.operators.work import tensor_bytes


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


def merged(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operators with equal ones joined, their counts added; the first of each keeps its place."""
    return _merged(Same(ops))


@lru_cache(maxsize=4)
def _merged(same: Same) -> tuple[Op, ...]:
    calls: dict[int, int] = {}
    for op in same.ops:
        calls[id(op)] = calls.get(id(op), 0) + op.count
    members = grouped({id(op): op for op in same.ops}.values(), _key)
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


def columns_of(ops: Sequence[Op]) -> OpColumns:
    """The operators' columns, kept for the next GPU they are asked for."""
    return _columns_of(Same(ops))


@lru_cache(maxsize=4)
def _columns_of(same: Same) -> OpColumns:
    ops = tuple(same.ops)
    families = tuple(map(family_of, ops))
    words, word_index = _distinct([family.word for family in families])
    names, name_index = _distinct([base_name(op.name) for op in ops])
    return OpColumns(
        ops=ops,
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
    """The distinct ones in the order in which they come, and which of them each is."""
    place = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return tuple(place), np.array([place[value] for value in values])


# What repeats in a model: blocks between which activations can be checkpointed, and which FSDP gathers.
#
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
    return _blocks_of(Same(trace.ops), trace.accumulation)


@lru_cache(maxsize=8)
def _blocks_of(same: Same, passes: int) -> Blocks:
    ops = [op for op in same.ops if op.phase is Phase.FORWARD]
    products = [op for op in ops if family_of(op).compute.tensor_cores]
    num = _repeats(products, passes)
    if num is None:
        return _chain(products, passes)
    inside = [op for op in ops if _repeats_often(op, num, passes)]
    total = made_bytes(ops)
    outside = total - made_bytes(inside)
    return Blocks(
        num=num, boundary_bytes=_stream_bytes(inside), outside_share=outside / total if total else 0.0
    )


def _repeats(products: Sequence[Op], passes: int) -> int | None:
    """The largest number of times that nearly all work of the products repeats."""
    total = sum(op.flops * op.count for op in products)
    for num in sorted({op.count // passes for op in products}, reverse=True):
        same = sum(op.flops * op.count for op in products if _repeats_often(op, num, passes))
        if num >= _LEAST_BLOCKS and same >= _LEAST_SHARE * total:
            return num
    return None


def _repeats_often(op: Op, num: int, passes: int) -> bool:
    return op.count // passes >= num


def _stream_bytes(ops: Sequence[Op]) -> float:
    """What blocks add to: the largest sum of two alike, or else the smallest that a product gives."""
    sums = [op for op in ops if base_name(op.name) in ("add", "add_") and _adds_alike(op)]
    if sums:
        return max(tensor_bytes(op.outputs[0]) for op in sums)
    products = [op for op in ops if family_of(op).compute.tensor_cores]
    return min((tensor_bytes(op.outputs[0]) for op in products if op.outputs), default=0)


def _chain(products: Sequence[Op], passes: int) -> Blocks:
    num = sum(op.count for op in products) // passes
    mean_bytes = made_bytes(products) / passes / num if num else 0.0
    return Blocks(
        num=max(round(math.sqrt(num)), 1), boundary_bytes=mean_bytes, outside_share=0.0, repeats=False
    )


def _adds_alike(op: Op) -> bool:
    return len(op.inputs) > 1 and len({tensor.shape for tensor in (*op.inputs, *op.outputs)}) == 1


def made_bytes(ops: Iterable[Op]) -> float:
    """Bytes of what operators give."""
    return sum(op.count * sum(map(tensor_bytes, op.outputs)) for op in ops)
