"""Results of operators whose shape depends on the values of their inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import fake_tensor
from torch.utils._pytree import tree_map

from ..composite import Args, Kwargs, Maker
from . import sparse, values

# What cuDNN's recurrent layers give back and keep for their backward pass.

# cuDNN does not publish the size of its reserve space. Backward needs, per layer, step and unit: the
# activations of the gates, the cell of an LSTM, and for a GRU the hidden part of its candidate
# (Appleyard et al., "Optimizing Performance of Recurrent Neural Networks on GPUs", 2016).
_KEPT_BY_MODE = {0: 1, 1: 1, 2: 5, 3: 4}


def recurrent_forward(mode: Maker, *arguments: Any) -> object:
    """Results of ``aten::_cudnn_rnn``, with an estimate of the reserve space that torch takes for empty."""
    data, _, _, buffer, hidden, cell, kind, hidden_size, proj_size, layers = arguments[:10]
    train, bidirectional = arguments[12:14]
    directions = 2 if bidirectional else 1
    out_size = (proj_size or hidden_size) * directions
    shape = (*data.shape[:-1], out_size)
    rows = data.shape[:-1].numel()
    # Every layer's output but the last's, which is the result, feeds the next layer.
    kept = layers * directions * _KEPT_BY_MODE[kind] * hidden_size + (layers - 1) * out_size
    reserve_bytes = rows * kept * data.element_size() if train else 0
    return (
        mode.empty(shape, data.dtype),
        mode.empty(hidden.shape, hidden.dtype),
        mode.empty(cell.shape if cell is not None else (0,), data.dtype),
        mode.empty((reserve_bytes,), torch.uint8),
        buffer,
    )


def recurrent_backward(mode: Maker, *arguments: Any) -> object:
    """Gradients of ``aten::_cudnn_rnn_backward``."""
    data, weights, _, _, hidden, cell = arguments[:6]

    def like(tensor: torch.Tensor) -> object:
        return None if tensor is None else mode.empty(tensor.shape, tensor.dtype)

    return like(data), like(hidden), like(cell), [like(weight) for weight in weights]


# Shapes of SyncBatchNorm's operators, which have kernels for CUDA alone and no rule for fake tensors.

aten = torch.ops.aten


def _stats(mode: Maker, data: torch.Tensor, *_: object) -> object:
    """Mean and inverse deviation of each channel, in the precision that sums have."""
    dtype = torch.float32 if data.dtype in (torch.float16, torch.bfloat16) else data.dtype
    return tuple(mode.empty((data.shape[1],), dtype) for _ in range(2))


def _backward_sums(
    mode: Maker, gradient: torch.Tensor, data: torch.Tensor, mean: torch.Tensor, invstd: torch.Tensor,
    weight: torch.Tensor | None, *wanted: bool,
) -> object:  # fmt: skip
    """Two sums for all ranks, then the gradients of weight and bias, each where it is wanted."""
    for_input, for_weight, for_bias = wanted
    of_mean = mode.empty(mean.shape, mean.dtype) if for_input else None
    of_product = mode.empty(invstd.shape, invstd.dtype) if for_input else None
    like = gradient if weight is None else weight
    parameters = [
        mode.empty((data.shape[1],), like.dtype) if needed else None for needed in (for_weight, for_bias)
    ]
    return of_mean, of_product, *parameters


ShapeRule = Callable[..., object]
HANDLED = (
    fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException,
    fake_tensor.UnsupportedFakeTensorException, fake_tensor.UnsupportedOperatorException,
    NotImplementedError,
)  # fmt: skip
# The shape of what they take follows from the second input alone.
_BY_INDEX = ("aten::index", "aten::masked_select")


def result_of(func: OpOverload, args: Args, kwargs: Kwargs, error: Exception, mode: Maker) -> object:
    """The true shape where the values are known or supposed, else: half of a mask is true, all are unique.

    Raises:
        NotImplementedError: a tensor is sparse.
        Exception: ``error`` itself where not even a CPU kernel knows the operator.
    """
    name = func._schema.name
    computed = values.compute(func, args, kwargs)
    if computed is not None:
        _tell_supposed(mode, args[1] if name in _BY_INDEX else args)
        return _like(computed, mode)
    if not func._schema.returns:
        return None  # it works in place, so there is no shape to find
    known = _KNOWN.get(name)
    if known is not None:
        result = known(mode, *args)
        if result is not None:
            return result
    sparse.refuse(func, args, kwargs)
    mode.unknown_operators.setdefault(name, type(error).__name__)
    return _from_cpu_kernel(func, args, kwargs, error, mode)


def _from_cpu_kernel(func: OpOverload, args: Args, kwargs: Kwargs, error: Exception, mode: Maker) -> object:
    def real(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return torch.zeros(value.shape, dtype=value.dtype)
        return torch.device("cpu") if isinstance(value, torch.device) else value

    try:
        result = func(*tree_map(real, args), **tree_map(real, kwargs))
    except Exception:  # noqa: BLE001 - whatever the kernel says, the first error is the better one
        raise error from None
    sparse.refuse(func, result)
    return _like(result, mode)


def _like(result: object, mode: Maker) -> object:
    def fake(value: object) -> object:
        return mode.empty(value.shape, value.dtype) if isinstance(value, torch.Tensor) else value

    return tree_map(fake, result)


def _tell_supposed(mode: Maker, inputs: object) -> None:
    mode.assumptions.update(dict.fromkeys(values.supposed_of(inputs)))


def _num_true(mode: Maker, mask: torch.Tensor, shape: torch.Size) -> int:
    known = values.of(mask)
    if known is not None:
        _tell_supposed(mode, mask)
        return int(known.expand(shape).count_nonzero())
    num_elements: int = shape.numel()
    # Whether its mask is asked for: of ranks that have samples, which all have.
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != "torch.nn.modules._functions":
        frame = frame.f_back
    if frame is not None:
        return num_elements
    mode.assumptions[values.HALF] = None
    return max(1, num_elements // 2)


def _nonzero(mode: Maker, tensor: torch.Tensor) -> object:
    return mode.empty((_num_true(mode, tensor, tensor.shape), tensor.dim()), torch.int64)


def _masked_select(mode: Maker, tensor: torch.Tensor, mask: torch.Tensor) -> object:
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)
    return mode.empty((_num_true(mode, mask, shape),), tensor.dtype)


def _index(mode: Maker, tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> object:
    masks = [i for i in indices if i is not None and i.dtype in (torch.bool, torch.uint8)]
    others = [i for i in indices if i is not None and i.dtype not in (torch.bool, torch.uint8)]
    if len(masks) != 1 or others:
        return None
    position = next(number for number, index in enumerate(indices) if index is not None)
    mask = masks[0]
    shape = list(tensor.shape)
    shape[position : position + mask.dim()] = [_num_true(mode, mask, mask.shape)]
    return mode.empty(shape, tensor.dtype)


def _unique(mode: Maker, tensor: torch.Tensor, *_: object) -> object:
    mode.assumptions["all elements are unique"] = None
    count = tensor.numel()
    return (
        mode.empty((count,), tensor.dtype),
        mode.empty(tensor.shape, torch.int64),
        mode.empty((count,), torch.int64),
    )


def _nms(mode: Maker, boxes: torch.Tensor, *_: object) -> object:
    mode.assumptions["half of the boxes overlap with a better one"] = None
    return mode.empty((-(-boxes.shape[0] // 2),), torch.int64)


def _ctc_loss(
    mode: Maker,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: object,  # noqa: ARG001
    target_lengths: torch.Tensor | Sequence[int],
    *_: object,
) -> object:
    """A loss of each sequence; probabilities of its labels and the blanks around them at each step."""
    steps, batch, _classes = log_probs.shape
    longest = _longest(mode, targets, target_lengths, batch)
    alphas = (batch, steps, 2 * longest + 1)
    return mode.empty((batch,), log_probs.dtype), mode.empty(alphas, log_probs.dtype)


def _longest(
    mode: Maker, targets: torch.Tensor, lengths: torch.Tensor | Sequence[int], num_sequences: int
) -> int:
    """Labels of the longest target; padded targets have room for it, joined ones do not tell."""
    if not isinstance(lengths, torch.Tensor):
        return max(lengths, default=0)
    known = values.of(lengths) if isinstance(lengths, fake_tensor.FakeTensor) else lengths
    if known is not None and known.device.type == "cpu":
        return int(known.max()) if known.numel() else 0
    if targets.dim() > 1:
        return targets.shape[1]
    mode.assumptions["targets of a batch are equally long"] = None
    return -(-targets.numel() // max(num_sequences, 1))


def _gru_cell(mode: Maker, gates: torch.Tensor, _: torch.Tensor, hidden: torch.Tensor, *__: object) -> object:
    rows, width = hidden.shape
    return mode.empty((rows, width), gates.dtype), mode.empty((rows, 5 * width), gates.dtype)


def _gru_cell_backward(mode: Maker, gradient: torch.Tensor, *_: object) -> object:
    (rows, width), dtype = gradient.shape, gradient.dtype
    shapes = ((rows, 3 * width), (rows, 3 * width), (rows, width), (3 * width,), (3 * width,))
    return tuple(mode.empty(shape, dtype) for shape in shapes)


def _pack_sequence(mode: Maker, data: torch.Tensor, lengths: torch.Tensor, *_: object) -> object:
    # The lengths are a CPU tensor, so real.
    values = lengths.tolist()
    sizes = [sum(length > step for length in values) for step in range(max(values))]
    packed = mode.empty((sum(sizes), *data.shape[2:]), data.dtype)
    return packed, torch.tensor(sizes)


def _rms_norm(mode: Maker, source: torch.Tensor, normalized: Sequence[int], *_: object) -> object:
    """FakeTensorMode would run its parts, with their temporary tensors."""
    rows = source.shape[: source.dim() - len(normalized)]
    kept = (*rows, *(1 for _ in normalized))
    accumulated = torch.float64 if source.dtype is torch.float64 else torch.float32
    return mode.empty(source.shape, source.dtype), mode.empty(kept, accumulated)


def _grouped_product(
    mode: Maker, left: torch.Tensor, right: torch.Tensor, ends: torch.Tensor | None = None, *_: object
) -> object:
    """The rule of FakeTensorMode wants BF16, which was all that the first kernels took."""
    if left.shape[-1] != right.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    shape: tuple[int, ...] = (left.shape[-2], right.shape[-1])
    if left.dim() == right.dim():
        shape = (left.shape[0] if ends is None else ends.numel(), *shape)
    return mode.empty(shape, left.dtype)


_KNOWN: dict[str, ShapeRule] = {
    "aten::nonzero": _nonzero,
    "aten::masked_select": _masked_select,
    "aten::index": _index,
    "aten::_unique2": _unique,
    "aten::_ctc_loss": _ctc_loss,
    "aten::_ctc_loss_backward": lambda mode, _, log_probs, *__: mode.empty(log_probs.shape, log_probs.dtype),
    "torchvision::nms": _nms,
}
# Operators that FakeTensorMode has no rule for, or a wrong one.
SHAPE_RULES: dict[OpOverload, ShapeRule] = {
    aten._cudnn_rnn.default: recurrent_forward,
    aten._cudnn_rnn_backward.default: recurrent_backward,
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
    aten._fused_rms_norm.default: _rms_norm,
    **({aten._grouped_mm.default: _grouped_product} if hasattr(aten, "_grouped_mm") else {}),
    aten._pack_padded_sequence.default: _pack_sequence,
    aten._pack_padded_sequence_backward.default: lambda mode, gradient, shape, *_: mode.empty(
        tuple(shape), gradient.dtype
    ),
    aten.batch_norm_stats.default: _stats,
    aten.batch_norm_gather_stats_with_counts.default: _stats,
    aten.batch_norm_backward_reduce.default: _backward_sums,
    **dict.fromkeys(
        (aten.batch_norm_elemt.default, aten.batch_norm_backward_elemt.default),
        lambda mode, data, *_: mode.empty(data.shape, data.dtype, data.stride()),
    ),
}
