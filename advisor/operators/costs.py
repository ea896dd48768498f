"""FLOPs and bytes of one operator call, from what was recorded; no torch.

Bytes are device-memory traffic if every element were read and written once: a lower bound that good
kernels reach. Expanded dimensions (stride 0) count once. Copies between host and device
(``advisor::h2d_copy``, ``advisor::d2h_copy``) cross PCIe: their bytes are those of the GPU's side, and a
predictor costs them by the link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from advisor.core.values import TensorSpec
from advisor.operators.flops import Attributes, Tensors, first_list, flops_of

_ITEM_BYTES = {
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "float32": 4, "int32": 4, "uint32": 4,
    "complex32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1,
    "bool": 1, "complex128": 16,
}  # fmt: skip
# Words in the names of operators that compute in earnest: without a formula their time is unknown.
_HEAVY_WORDS = (
    "conv", "mm", "matmul", "attention", "rnn", "lstm", "gru", "fft", "linalg", "cdist", "einsum",
    "svd", "cholesky", "solve", "inverse", "bilinear",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call costs.

    Attributes:
        flops: 0 where no formula is known.
        bytes: read and written in device memory.
        warning: set if the operator computes and no formula is known.
    """

    flops: int
    bytes: int
    warning: str | None = None


def cost_of(name: str, inputs: Tensors, outputs: Tensors, attributes: Attributes) -> Cost:
    """Cost of one call of an operator.

    >>> vector = TensorSpec(shape=(1000,), dtype="float32")
    >>> cost_of("aten::add", [vector, vector], [vector], {})
    Cost(flops=1000, bytes=12000, warning=None)
    """
    warning = None
    flops = flops_of(name, inputs, outputs, attributes)
    if flops is None and _is_heavy(name):
        warning = f"{name} has no FLOP formula: only its memory traffic is counted"
    base = name.removeprefix("aten::")
    traffic = _TRAFFIC.get(base) or _TRAFFIC.get(base.rstrip("_"), _everything_once)
    return Cost(flops=flops or 0, bytes=traffic(inputs, outputs, attributes), warning=warning)


def tensor_bytes(tensor: TensorSpec) -> int:
    """Bytes of a tensor's distinct elements.

    >>> tensor_bytes(TensorSpec(shape=(8, 4), dtype="float16", stride=(0, 1)))
    8
    """
    stride = tensor.stride if tensor.stride is not None else (1,) * len(tensor.shape)
    elements = 1
    for size, step in zip(tensor.shape, stride, strict=True):
        # A stride of 0 shows one element many times; a size of 0 leaves none.
        elements *= size if step != 0 or size == 0 else 1
    return elements * item_bytes(tensor.dtype)


def item_bytes(dtype: str) -> int:
    """Bytes of one element; formats that torch adds later are small floats, so 1."""
    return _ITEM_BYTES.get(dtype, 1)


def _is_heavy(name: str) -> bool:
    return not name.startswith(("aten::", "fsdp::")) or any(word in name for word in _HEAVY_WORDS)


def _total(tensors: Sequence[TensorSpec]) -> int:
    return sum(tensor_bytes(tensor) for tensor in tensors)


Traffic = Callable[[Tensors, Tensors, Attributes], int]


def _everything_once(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return _total(inputs) + _total(outputs)


def _writes_only(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Fills and random numbers; an input gives the shape alone."""
    return _total(outputs)


def _copies(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """In-place copies do not read what they overwrite."""
    return _total(inputs[len(outputs) :]) + _total(outputs)


def _gathers(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Reads as many elements as it writes, not the whole table, and the indices."""
    return 2 * _total(outputs) + _total(inputs[1:])


def _scatters(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Reads indices and values; reads and writes as many elements of the target."""
    *indices, values = inputs[1:] or inputs
    return _total(indices) + 3 * tensor_bytes(values)


def _scatters_into_copy(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    """The same into a copy of the target."""
    return _scatters(inputs, outputs, attributes) + 2 * tensor_bytes(inputs[0])


def _picks_targets(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """The loss of classes reads one probability per target."""
    picked = tensor_bytes(inputs[1]) // 8 * item_bytes(inputs[0].dtype)
    return picked + _total(inputs[1:]) + _total(outputs)


def _second_gives_shape(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Backward operators that take the forward's input for its shape alone."""
    return _total(inputs[:1]) + _total(inputs[2:]) + _total(outputs)


def _convolution_backward(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    """Reads the weight for the input's gradient and the input for the weight's."""
    grad_output, source, weight = inputs[:3]
    mask = cast("tuple[bool, ...]", attributes["output_mask"])
    read = [grad_output]
    read += [weight] if mask[0] else []
    read += [source] if mask[1] else []
    return _total(read) + _total(outputs)


def _fused_step(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    """The schema marks gradients as written, which fused steps do only when they unscale."""
    return _total(inputs) + _total(outputs) - _total(first_list(inputs, attributes))


def _copies_all_but_last(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """FSDP2 copies its shards into their place in a buffer, or gradients into one."""
    return 2 * _total(inputs[:-1])


def _copies_first(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """FSDP2 copies what was gathered into the layer's parameters."""
    return 2 * _total(inputs[:1])


def _crosses_link(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return max(_total(inputs), _total(outputs))


def _rule(words: str, traffic: Traffic) -> dict[str, Traffic]:
    return dict.fromkeys(words.split(), traffic)


_TRAFFIC: dict[str, Traffic] = {
    **_rule("advisor::h2d_copy advisor::d2h_copy", _crosses_link),
    **_rule(
        """zero zeros ones full fill zeros_like ones_like full_like new_zeros new_ones new_full arange
        linspace eye scalar_tensor rand randn randint randperm rand_like randn_like randint_like uniform
        normal random exponential bernoulli _foreach_zero""",
        _writes_only,
    ),
    **_rule("copy _foreach_copy", _copies),
    **_rule("embedding index index_select gather", _gathers),
    **_rule("index_add_ scatter_add_ index_put_ _index_put_impl_ scatter_ index_copy_", _scatters),
    **_rule("index_add scatter_add index_put scatter index_copy", _scatters_into_copy),
    **_rule("nll_loss_forward nll_loss2d_forward", _picks_targets),
    **_rule(
        """nll_loss_backward nll_loss2d_backward max_pool2d_with_indices_backward avg_pool2d_backward
        _adaptive_avg_pool2d_backward""",
        _second_gives_shape,
    ),
    "convolution_backward": _convolution_backward,
    **_rule("fsdp::all_gather_copy_in fsdp::chunk_cat", _copies_all_but_last),
    "fsdp::split_with_sizes_copy": _copies_first,
    **_rule("_fused_sgd _fused_adam _fused_adamw", _fused_step),
}
