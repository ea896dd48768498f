"""Copies of attention's results that flash attention makes needless.

In float32 PyTorch runs the memory-efficient kernel, whose results lie in the order batch, position, head.
Flash attention, which bfloat16 gets where there is no mask, gives them the layout of its operands
(``empty_like`` in ``flash_attn/flash_api.cpp``). Gradients of query, key and value pass through views alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.core.values import Flow, Op
from advisor.operators.family import base_name

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
    if sorted(zip(view.shape, view.stride, strict=True)) != sorted(
        zip(result.shape, result.stride, strict=True)
    ):
        return False
    steps = dict(zip(result.stride, query.stride, strict=True))
    own = [steps[step] for step in view.stride]
    return own == sorted(own, reverse=True)
