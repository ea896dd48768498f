"""Results of operators whose shape depends on values that a fake tensor does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.utils._pytree import tree_map

from .sync_batch_norm import SYNC_BATCH_NORM_RULES

if TYPE_CHECKING:
    from .mode import HybridMode

aten = torch.ops.aten
ShapeRule = Callable[..., Any]
HANDLED = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    NotImplementedError,
)


def result_of(func: Any, args: Any, kwargs: Any, error: Exception, mode: HybridMode) -> Any:
    """A plausible result: half of a mask is true, all elements are unique.

    Raises:
        Exception: ``error`` itself where not even a CPU kernel knows the operator.
    """
    name = func._schema.name
    known = _KNOWN.get(name)
    if known is not None:
        result = known(mode, *args)
        if result is not None:
            return result
    mode.unknown_operators.setdefault(name, type(error).__name__)
    return _from_cpu_kernel(func, args, kwargs, error, mode)


def _from_cpu_kernel(func: Any, args: Any, kwargs: Any, error: Exception, mode: HybridMode) -> Any:
    def real(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.zeros(value.shape, dtype=value.dtype)
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def fake(value: Any) -> Any:
        return mode.empty(value.shape, value.dtype) if isinstance(value, torch.Tensor) else value

    try:
        result = func(*tree_map(real, args), **tree_map(real, kwargs))
    except Exception:  # noqa: BLE001 - whatever the kernel says, the first error is the better one
        raise error from None
    return tree_map(fake, result)


def _half(count: int) -> int:
    return max(1, count // 2)


def _nonzero(mode: HybridMode, tensor: Any) -> Any:
    return mode.empty((_half(tensor.numel()), tensor.dim()), torch.int64)


def _masked_select(mode: HybridMode, tensor: Any, mask: Any) -> Any:
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)
    return mode.empty((_half(shape.numel()),), tensor.dtype)


def _index(mode: HybridMode, tensor: Any, indices: Any) -> Any:
    masks = [i for i in indices if i is not None and i.dtype in (torch.bool, torch.uint8)]
    others = [i for i in indices if i is not None and i.dtype not in (torch.bool, torch.uint8)]
    if len(masks) != 1 or others:
        return None
    position = next(number for number, index in enumerate(indices) if index is not None)
    mask = masks[0]
    shape = list(tensor.shape)
    shape[position : position + mask.dim()] = [_half(mask.numel())]
    return mode.empty(shape, tensor.dtype)


def _unique(mode: HybridMode, tensor: Any, *_: Any) -> Any:
    count = tensor.numel()
    return (
        mode.empty((count,), tensor.dtype),
        mode.empty(tensor.shape, torch.int64),
        mode.empty((count,), torch.int64),
    )


def _rnn_backward(mode: HybridMode, *arguments: Any) -> Any:
    data, weights, _, _, hidden, cell = arguments[:6]

    def like(tensor: Any) -> Any:
        return None if tensor is None else mode.empty(tensor.shape, tensor.dtype)

    return like(data), like(hidden), like(cell), [like(weight) for weight in weights]


def _pack_sequence(mode: HybridMode, data: Any, lengths: Any, *_: Any) -> Any:
    # The lengths are a CPU tensor, so real.
    values = lengths.tolist()
    sizes = [sum(length > step for length in values) for step in range(max(values))]
    packed = mode.empty((sum(sizes), *data.shape[2:]), data.dtype)
    return packed, torch.tensor(sizes)


def _pack_sequence_backward(mode: HybridMode, gradient: Any, shape: Any, *_: Any) -> Any:
    return mode.empty(tuple(shape), gradient.dtype)


_KNOWN: dict[str, ShapeRule] = {
    "aten::nonzero": _nonzero,
    "aten::masked_select": _masked_select,
    "aten::index": _index,
    "aten::_unique2": _unique,
}
# Operators that FakeTensorMode has no rule for, or a wrong one.
SHAPE_RULES: dict[Any, ShapeRule] = {
    aten._cudnn_rnn_backward.default: _rnn_backward,
    aten._pack_padded_sequence.default: _pack_sequence,
    aten._pack_padded_sequence_backward.default: _pack_sequence_backward,
    **SYNC_BATCH_NORM_RULES,
}
