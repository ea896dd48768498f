"""A trace as if attention that is written out called ``scaled_dot_product_attention``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from advisor.core.values import Op, Phase, TensorSpec, Trace
from advisor.operators.costs import cost_of
from advisor.operators.family import base_name

_FUSED = "aten::_scaled_dot_product_efficient_attention"
_SOFTMAX = "_softmax"
_MASKS = ("masked_fill", "where", "add")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """The matrix of scores that a softmax works on: [N, Q, K], of heads of D."""

    heads: int
    queries: int
    keys: int
    head: int
    dtype: str

    @property
    def numel(self) -> int:
        return self.heads * self.queries * self.keys


def with_fused_attention(trace: Trace) -> Trace | None:
    """The trace with products, softmax and what stands between them as one fused call.

    A mask is kept, so that kernels which take none are never chosen for it. Memory is left as it is, an upper
    bound: the scores are no longer kept.

    Returns:
        None where no softmax stands between two batched products.
    """
    found = {scores: count for op in trace.ops for scores, count in _scores(op, trace.ops)}
    if not found:
        return None
    kept = tuple(op for op in trace.ops if not any(_works_on(op, scores) for scores in found))
    fused = tuple(call for scores, count in found.items() for call in _calls(scores, count, trace))
    return replace(trace, ops=(*kept, *fused), iteration_s=None)


def _scores(op: Op, ops: tuple[Op, ...]) -> Iterator[tuple[_Scores, int]]:
    if base_name(op.name) != _SOFTMAX or op.phase is not Phase.FORWARD or len(op.outputs[0].shape) < 3:
        return
    *heads, queries, keys = op.outputs[0].shape
    wanted = (math.prod(heads), queries, keys)
    for product in ops:
        if (
            base_name(product.name) == "bmm"
            and product.phase is Phase.FORWARD
            and product.outputs[0].shape == wanted
        ):
            left = product.inputs[0]
            yield (
                _Scores(heads=wanted[0], queries=queries, keys=keys, head=left.shape[2], dtype=left.dtype),
                op.count,
            )
            return


def _works_on(op: Op, scores: _Scores) -> bool:
    """Whether an operator reads or makes a matrix of scores."""
    if op.phase is Phase.OPTIMIZER:
        return False
    return any(
        math.prod(tensor.shape) == scores.numel and tensor.shape[-1] in (scores.keys, scores.queries)
        for tensor in (*op.inputs, *op.outputs)
        if len(tensor.shape) >= 3
    )


def _calls(scores: _Scores, count: int, trace: Trace) -> Iterator[Op]:
    query = TensorSpec(shape=(1, scores.heads, scores.queries, scores.head), dtype=scores.dtype)
    key = TensorSpec(shape=(1, scores.heads, scores.keys, scores.head), dtype=scores.dtype)
    lse = TensorSpec(shape=(1, scores.heads, scores.queries), dtype="float32")
    masked = any(
        base_name(op.name).strip("_") in _MASKS and op.phase is Phase.FORWARD and _works_on(op, scores)
        for op in trace.ops
    )
    mask = (TensorSpec(shape=(scores.queries, scores.keys), dtype=scores.dtype),) if masked else ()
    yield _call(_FUSED, Phase.FORWARD, (query, key, key, *mask), (query, lse), count)
    has_backward = any(op.phase is Phase.BACKWARD and _works_on(op, scores) for op in trace.ops)
    if has_backward:
        inputs = (query, query, key, key, *mask, query, lse)
        yield _call(f"{_FUSED}_backward", Phase.BACKWARD, inputs, (query, key, key), count)


def _call(
    name: str, phase: Phase, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], count: int
) -> Op:
    attributes = {"dropout_p": 0.0, "is_causal": False}
    cost = cost_of(name, inputs, outputs, attributes)
    return Op(
        name=name,
        phase=phase,
        inputs=inputs,
        outputs=outputs,
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=count,
    )
