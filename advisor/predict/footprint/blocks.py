"""What repeats in a model: blocks between which activations can be checkpointed, and which FSDP gathers.

A transformer calls the same products in each of its layers, and adds what they give to a stream of one shape,
which is all that checkpointing keeps of a layer. A model without such a pattern is taken as a chain of its
products, cut into about the square root of their number of segments (Chen et al., "Training deep nets with
sublinear memory cost", 2016).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from advisor.core.values import Op, Phase, Trace
from advisor.operators.family import base_name
from advisor.operators.registry import family_of
from advisor.operators.work import tensor_bytes
from advisor.predict.distinct import Same

# Where less of the products' work repeats so often, the model is taken as a chain.
_LEAST_SHARE = 0.8
_LEAST_BLOCKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The repeated part of a model.

    Attributes:
        num: how often it repeats; segments of a chain where nothing does.
        boundary_bytes: what passes from one to the next, for one pass of the profiled batch.
        outside_share: of what the forward pass makes, that of other parts, such as the head.
        repeats: False for the segments of a chain.
    """

    num: int
    boundary_bytes: float
    outside_share: float
    repeats: bool = True


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
