"""Floating-point operations of one operator call, from its recorded shapes.

A multiply-add counts two, as in ``torch.utils.flop_counter``, with which matrix products, convolutions
and attention agree; like there, a causal mask does not halve attention (the trace keeps ``is_causal``).
Cheap operators have a nominal count per element: they are bound by memory, and the figure only has to
say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import cast

from advisor.core.values import AttributeValue, TensorSpec

Tensors = Sequence[TensorSpec]
Attributes = Mapping[str, AttributeValue]
Formula = Callable[[Tensors, Tensors, Attributes], int]

# cuDNN's numbers of the recurrent cells: plain with ReLU or tanh, LSTM, GRU.
_GATES_BY_RNN_MODE = {0: 1, 1: 1, 2: 4, 3: 3}


def flops_of(name: str, inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int | None:
    """FLOPs of one call; None if no formula is known for the operator.

    >>> square = TensorSpec(shape=(4, 4), dtype="float32")
    >>> flops_of("aten::mm", [square, square], [square], {})
    128
    """
    base = name.removeprefix("aten::")
    formula = FORMULAS.get(base)
    if formula is not None:
        return formula(inputs, outputs, attributes)
    stem = base.rstrip("_").removeprefix("_foreach_")
    per_element = _PER_ELEMENT.get(stem)
    if per_element is not None:
        return per_element * sum(numel(tensor) for tensor in outputs[: _num_results(base, outputs)])
    per_input = _PER_INPUT_ELEMENT.get(stem)
    if per_input is not None:
        sources = inputs if base.startswith("_foreach_") else inputs[:1]
        return per_input * sum(numel(tensor) for tensor in sources)
    return 0 if stem in _MOVE_ONLY or name.startswith("advisor::") else None


def numel(tensor: TensorSpec) -> int:
    """Elements of a tensor."""
    return prod(tensor.shape)


def _num_results(base: str, outputs: Tensors) -> int:
    # Norms return statistics, dropout a mask; only the first output takes arithmetic.
    return len(outputs) if base.startswith("_foreach_") else 1


def _product(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return 2 * numel(outputs[0]) * inputs[0].shape[-1]


def _product_with_addend(
    inputs: Tensors,
    outputs: Tensors,
    attributes: Attributes,  # noqa: ARG001
) -> int:
    return 2 * numel(outputs[0]) * inputs[1].shape[-1]


def _batch_reducing_product(
    inputs: Tensors,
    outputs: Tensors,
    attributes: Attributes,  # noqa: ARG001
) -> int:
    batches, _, inner = inputs[1].shape
    return 2 * numel(outputs[0]) * inner * batches


def _dot(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return 2 * numel(inputs[0])


def _convolve(source: TensorSpec, weight: TensorSpec, result: TensorSpec, transposed: bool) -> int:
    """Each weight meets each position of the output, or of the input if transposed."""
    positions = (source if transposed else result).shape[2:]
    return 2 * source.shape[0] * prod(positions) * numel(weight)


def _convolution(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    return _convolve(inputs[0], inputs[1], outputs[0], bool(attributes.get("transposed")))


def _convolution_backward(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    grad_output, source, weight = inputs[:3]
    mask = cast("tuple[bool, ...]", attributes["output_mask"])
    forward = _convolve(source, weight, grad_output, bool(attributes.get("transposed")))
    return forward * sum(bool(wanted) for wanted in mask[:2])


def _attend(query: TensorSpec, key: TensorSpec, value: TensorSpec, products: tuple[int, int]) -> int:
    """``products``: how many products run over the query's and over the value's head size."""
    scores = prod(query.shape[:-1]) * key.shape[-2]
    return 2 * scores * (products[0] * query.shape[-1] + products[1] * value.shape[-1])


def _attention(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return _attend(inputs[0], inputs[1], inputs[2], (1, 1))


def _attention_backward(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    # The scores are computed again.
    return _attend(inputs[1], inputs[2], inputs[3], (3, 2))


def _rnn(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    def number(name: str) -> int:
        return cast("int", attributes[name])

    data = inputs[0]
    hidden = number("hidden_size")
    state = number("proj_size") or hidden
    directions = 2 if attributes["bidirectional"] else 1
    gates = _GATES_BY_RNN_MODE[number("mode")]
    rows = prod(data.shape[:-1])
    total = 0
    for layer in range(number("num_layers")):
        width = data.shape[-1] if layer == 0 else state * directions
        total += 2 * rows * directions * gates * hidden * (width + state)
        total += 2 * rows * directions * hidden * number("proj_size")
    return total


def _rnn_backward(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    return 2 * _rnn(inputs, outputs, attributes)


def _pooling(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    sides = cast("tuple[int, ...]", attributes["kernel_size"])
    return numel(outputs[0]) * prod(sides * 2 if len(sides) == 1 else sides)


def _fused_step(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return 12 * sum(numel(tensor) for tensor in first_list(inputs, attributes))


def _unscale(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return sum(numel(tensor) for tensor in first_list(inputs, attributes))


def first_list(tensors: Tensors, attributes: Attributes) -> Tensors:
    """The tensors of the operator's first list argument."""
    return tensors[: cast("int", attributes["num_tensors"])]


FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(("mm", "bmm", "matmul", "_scaled_mm", "_int_mm", "mv"), _product),
    **dict.fromkeys(("addmm", "baddbmm", "_addmm_activation", "addmv"), _product_with_addend),
    "addbmm": _batch_reducing_product,
    **dict.fromkeys(("dot", "vdot"), _dot),
    **dict.fromkeys(
        ("convolution", "_convolution", "cudnn_convolution", "_slow_conv2d_forward",
         "convolution_overrideable", "mkldnn_convolution", "_conv_depthwise2d"),
        _convolution,
    ),
    "convolution_backward": _convolution_backward,
    **dict.fromkeys(
        ("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
         "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu"),
        _attention,
    ),
    **dict.fromkeys(
        ("_scaled_dot_product_flash_attention_backward",
         "_scaled_dot_product_efficient_attention_backward",
         "_scaled_dot_product_cudnn_attention_backward",
         "_scaled_dot_product_flash_attention_for_cpu_backward"),
        _attention_backward,
    ),
    "_cudnn_rnn": _rnn,
    "_cudnn_rnn_backward": _rnn_backward,
    **dict.fromkeys(("max_pool2d_with_indices", "avg_pool2d"), _pooling),
    **dict.fromkeys(("_fused_sgd_", "_fused_adam_", "_fused_adamw_"), _fused_step),
    "_amp_foreach_non_finite_check_and_unscale_": _unscale,
}  # fmt: skip


def _table(words: str, count: int) -> dict[str, int]:
    return dict.fromkeys(words.split(), count)


# Per element of the first output.
_PER_ELEMENT: dict[str, int] = {
    **_table(
        """add sub rsub mul div neg abs sign maximum minimum clamp clamp_min clamp_max relu relu6
        threshold threshold_backward leaky_relu leaky_relu_backward hardtanh hardtanh_backward sqrt
        rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p pow square sin cos tan tanh sigmoid erf
        floor ceil round trunc frac fmod remainder floor_divide eq ne lt le gt ge logical_and logical_or
        logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor where masked_fill
        isnan isinf isfinite nan_to_num native_dropout native_dropout_backward prelu
        binary_cross_entropy_with_logits hardswish hardsigmoid bernoulli atan2 sgn acos asin atan
        sinh cosh asinh acosh atanh erfinv logical_and addcmul_scalar max_pool2d_with_indices_backward
        avg_pool2d_backward upsample_nearest2d upsample_nearest1d upsample_nearest3d""",
        1,
    ),
    **_table(
        """addcmul addcdiv lerp tanh_backward sigmoid_backward mse_loss_backward gelu silu elu celu
        softplus mish hardswish_backward hardsigmoid_backward elu_backward softplus_backward
        log_sigmoid_forward silu_backward mish_backward gelu_backward cumsum cumprod glu glu_backward
        binary_cross_entropy_backward smooth_l1_loss_backward huber_loss_backward log_sigmoid_backward
        _prelu_kernel _prelu_kernel_backward upsample_bilinear2d upsample_bicubic2d
        upsample_bilinear2d_backward logit logaddexp""",
        2,
    ),
    **_table(
        """_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_batch_norm
        cudnn_batch_norm miopen_batch_norm native_layer_norm native_group_norm _fused_rms_norm
        _native_batch_norm_legit _batch_norm_with_update _native_batch_norm_legit_no_training""",
        5,
    ),
    **_table(
        """native_batch_norm_backward cudnn_batch_norm_backward native_layer_norm_backward
        native_group_norm_backward batch_norm_backward _fused_rms_norm_backward""",
        8,
    ),
    **_table("_thnn_fused_lstm_cell _thnn_fused_gru_cell", 10),
}

# Per element of the first input: reductions.
_PER_INPUT_ELEMENT: dict[str, int] = {
    **_table(
        """sum mean prod max min amax amin any all argmax argmin nansum norm linalg_vector_norm
        logsumexp var std var_mean std_mean mse_loss l1_loss smooth_l1_loss huber_loss
        binary_cross_entropy nll_loss_backward _adaptive_avg_pool2d adaptive_avg_pool2d
        _adaptive_avg_pool2d_backward
        adaptive_max_pool2d max_pool3d_with_indices avg_pool3d count_nonzero
        embedding_dense_backward index_add scatter_add index_put _index_put_impl scatter_reduce""",
        1,
    ),
}

# Copies, fills, look-ups and random numbers: no arithmetic worth counting.
_MOVE_ONLY = _table(
    """copy _to_copy clone contiguous zero zeros ones full fill empty zeros_like ones_like full_like
    new_zeros new_ones new_full arange linspace eye scalar_tensor cat stack
    embedding index index_select gather scatter slice_backward select_backward slice_scatter
    select_scatter as_strided_scatter constant_pad_nd pad reflection_pad2d roll flip repeat
    repeat_interleave tril triu masked_select nonzero sort topk argsort _unique2 unique_consecutive
    rand randn randint randperm rand_like randn_like randint_like uniform normal random exponential
    multinomial nll_loss_forward nll_loss2d_forward nll_loss2d_backward one_hot
    _pack_padded_sequence _pack_padded_sequence_backward _amp_update_scale detach_copy lift_fresh_copy
    searchsorted bucketize bincount histc unfold_backward col2im im2col pixel_shuffle
    _reshape_copy split_with_sizes_copy expand_copy view_copy masked_scatter index_copy index_fill
    diagonal_backward embedding_renorm tril_indices triu_indices full_out""",
    0,
)
