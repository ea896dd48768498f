"""A trace as if attention that is written out called ``scaled_dot_product_attention``."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.core.values import AttributeValue, Flow, Op, Phase, TensorSpec, Trace
from advisor.operators.family import base_name
from advisor.predict.what_if.batch import made_op

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
    bound: the scores are no longer kept. None where no softmax stands between two batched products.
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
    products = (one for one in ops if base_name(one.name) == "bmm" and one.phase is Phase.FORWARD)
    left = next((one.inputs[0] for one in products if one.outputs[0].shape == wanted), None)
    if left is not None:
        head, dtype = left.shape[2], left.dtype
        yield _Scores(heads=wanted[0], queries=queries, keys=keys, head=head, dtype=dtype), op.count


def _works_on(op: Op, scores: _Scores) -> bool:
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
    how: dict[str, AttributeValue] = {"dropout_p": 0.0, "is_causal": False}
    yield made_op(_FUSED, Phase.FORWARD, (query, key, key, *mask), (query, lse), how, count)
    has_backward = any(op.phase is Phase.BACKWARD and _works_on(op, scores) for op in trace.ops)
    if has_backward:
        inputs = (query, query, key, key, *mask, query, lse)
        yield made_op(f"{_FUSED}_backward", Phase.BACKWARD, inputs, (query, key, key), how, count)


# In float32 PyTorch runs the memory-efficient kernel, whose results lie in the order batch, position, head.
# Flash attention, which bfloat16 gets where there is no mask, gives them the layout of its operands
# (``empty_like`` in ``flash_attn/flash_api.cpp``). Gradients of query, key and value pass through views
# alone.

_EFFICIENT = "_scaled_dot_product_efficient_attention"
_OPERANDS = 3  # query, key and value; a mask is the fourth


def in_flash_layout(ops: Sequence[Op]) -> list[Op]:
    """The operators without such copies; what read a copy reads what was copied."""
    makers = {flow.id: op for op in ops for flow in op.flows}
    copied: dict[int, int] = {}
    for op in ops:
        for flow in op.flows:
            if base_name(op.name) == "clone" and len(flow.sources) == 1:
                source = copied.get(flow.sources[0], flow.sources[0])
                if source in makers and _is_needless(op, flow, makers[source], makers):
                    copied[flow.id] = source
    return [one for op in ops for one in _without(op, copied)] if copied else list(ops)


def _without(op: Op, copied: Mapping[int, int]) -> Iterator[Op]:
    if not op.flows:
        yield op
        return
    kept = tuple(
        replace(flow, sources=tuple(copied.get(source, source) for source in flow.sources))
        for flow in op.flows
        if flow.id not in copied
    )
    if kept:
        yield replace(op, flows=kept, count=sum(flow.count for flow in kept))


def _is_needless(copy: Op, flow: Flow, made_by: Op, makers: Mapping[int, Op]) -> bool:
    name = base_name(made_by.name)
    if name == f"{_EFFICIENT}_backward":
        forward = [makers.get(own.forward) for own in made_by.flows if own.forward is not None]
        return flow.is_of_view and all(op is not None and _has_no_mask(op) for op in forward)
    return name == _EFFICIENT and _has_no_mask(made_by) and _is_whole_in_order(copy, made_by)


def _has_no_mask(attention: Op) -> bool:
    return len(attention.inputs) == _OPERANDS


def _is_whole_in_order(copy: Op, attention: Op) -> bool:
    """Whether the view that is copied would be contiguous if the result lay as the query does."""
    view, result, query = copy.inputs[0], attention.outputs[0], attention.inputs[0]
    if view.stride is None or result.stride is None or query.stride is None:
        return False
    of_view = sorted(zip(view.shape, view.stride, strict=True))
    of_result = sorted(zip(result.shape, result.stride, strict=True))
    if of_view != of_result:
        return False
    steps = dict(zip(result.stride, query.stride, strict=True))
    own = [steps[step] for step in view.stride]
    return own == sorted(own, reverse=True)
