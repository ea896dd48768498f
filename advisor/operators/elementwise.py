"""Element-wise operators, copies, fills and random numbers, and whatever no other family knows."""

import math
from collections.abc import Iterator, Mapping

from advisor.core.values import Op, Phase
from advisor.operators import case, family
from advisor.operators.case import tensor
from advisor.operators.cycles import StreamedCall, is_half, plain_work, stream_costs
from advisor.operators.work import MOVES, PerElement, total_bytes

_LEARNED = family.names(
    """add add_ sub sub_ rsub mul mul_ div div_ pow relu relu_ gelu gelu_backward tanh tanh_ tanh_backward
    sigmoid sigmoid_backward silu silu_ exp silu_backward threshold_backward neg rsqrt sqrt where masked_fill
    masked_fill_ native_dropout native_dropout_backward clone copy_ _to_copy reciprocal leaky_relu leaky_relu_
    leaky_relu_backward hardtanh hardtanh_ clamp clamp_min addcmul addcdiv sin cos log abs"""
)
_TANH = family.names("tanh tanh_ sigmoid")


def _features(op: Op) -> tuple[float, ...]:
    """Powers and hyperbolic tangents take so many instructions that some boards wait for them."""
    name = family.base_name(op.name)
    largest = max(math.prod(tensor.shape) for tensor in (*op.inputs, *op.outputs))
    return (
        math.log(op.bytes),
        math.log(1 + sum(math.prod(tensor.shape) == largest for tensor in (*op.inputs, *op.outputs))),
        float(name == "pow"),
        float(name in _TANH),
    )


_CURVES = family.names(
    """gelu silu sigmoid tanh exp log sin cos erf pow softplus mish gelu_ silu_ sigmoid_ tanh_ exp_ log_
    pow_"""
)
_CURVES_BACKWARD = family.names("gelu_backward silu_backward sigmoid_backward tanh_backward mish_backward")


def _stream(op: Op) -> StreamedCall | None:
    """In 16 bits what an SM does in a clock counts; other precisions are a roofline."""
    if not is_half(op) or not op.outputs:
        return None
    name = family.base_name(op.name)
    kind = "curve" if name in _CURVES else "curve backward" if name in _CURVES_BACKWARD else "arithmetic"
    elements = max(math.prod(tensor.shape) for tensor in op.outputs)
    return StreamedCall(cost=stream_costs()[kind], work=plain_work(elements, op.bytes))


_LARGE = (32768, 2048)


def _cast(shape: case.Shape, dtype: str) -> case.Call:
    target = "float16" if dtype == "float32" else "float32"
    return case.call("_to_copy", tensor(shape, dtype), dtype=case.dtype_argument(target))


_FORWARD: Mapping[str, case.Make] = {
    "add": case.mapped("add.Tensor", 2),
    "add_": case.mapped("add_.Tensor", 2),
    "broadcast": lambda shape, dtype: case.call(
        "add.Tensor", tensor(shape, dtype), tensor((1, shape[1]), dtype)
    ),
    "mul": case.mapped("mul.Tensor", 2),
    "scale": case.mapped("mul.Scalar", 1, 0.5),
    "gelu": case.mapped("gelu", 1, approximate="tanh"),
    "relu": case.mapped("relu", 1),
    "silu": case.mapped("silu", 1),
    "dropout": case.mapped("native_dropout", 1, 0.1, True),
    "copy": case.mapped("copy_", 2),
    "cast": _cast,
    "clone": lambda shape, dtype: case.call(
        "clone",
        tensor(shape, dtype, stride=(1, shape[0])),
        memory_format={"memory_format": "contiguous_format"},
    ),
    "cat": lambda shape, dtype: case.call("cat", [tensor(shape, dtype), tensor(shape, dtype)], 1),
    "fill": case.mapped("zero_", 1),
}
_BACKWARD: Mapping[str, case.Make] = {
    "gelu_backward": case.mapped("gelu_backward", 2, approximate="tanh"),
    "relu_backward": case.mapped("threshold_backward", 2, 0),
    "silu_backward": case.mapped("silu_backward", 2),
    "dropout_backward": lambda shape, dtype: case.call(
        "native_dropout_backward", tensor(shape, dtype), tensor(shape, "bool"), 1.25
    ),
}


def _cases(index: int, caps: case.Caps) -> Iterator[case.Case]:
    yield from case.streams("elementwise", _FORWARD, Phase.FORWARD, index, caps)
    yield from case.streams("elementwise", _BACKWARD, Phase.BACKWARD, index, caps)


def _calibration_cases() -> Iterator[case.Case]:
    for dtype in case.FLOATS:
        one = tensor(_LARGE, dtype)
        yield case.Case(family="elementwise", dtype=dtype, call=case.call("add.Tensor", one, one))
        yield case.Case(family="elementwise", dtype=dtype, call=case.call("relu", one))


_POINTWISE = family.Learned(
    name="pointwise", names=_LEARNED, num_features=4, features=_features, counts_flops=False, steps=2000,
    rates=family.FULL_RATES,
)  # fmt: skip


ELEMENTWISE = family.Family(
    word="element-wise",
    nominal={
        **family.each(
            """add sub rsub mul div neg abs sign maximum minimum clamp clamp_min clamp_max relu relu6
            threshold threshold_backward leaky_relu leaky_relu_backward hardtanh hardtanh_backward sqrt
            rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p pow square sin cos tan tanh sigmoid erf
            floor ceil round trunc frac fmod remainder floor_divide eq ne lt le gt ge logical_and logical_or
            logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor where masked_fill isnan
            isinf isfinite nan_to_num native_dropout native_dropout_backward prelu hardswish hardsigmoid
            bernoulli atan2 sgn acos asin atan sinh cosh asinh acosh atanh erfinv addcmul_scalar
            upsample_nearest2d upsample_nearest1d upsample_nearest3d""",
            PerElement(of_output=1),
        ),
        **family.each(
            """addcmul addcdiv lerp tanh_backward sigmoid_backward gelu silu elu celu softplus mish
            hardswish_backward hardsigmoid_backward elu_backward softplus_backward log_sigmoid_forward
            silu_backward mish_backward gelu_backward cumsum cumprod glu glu_backward log_sigmoid_backward
            _prelu_kernel _prelu_kernel_backward upsample_bilinear2d upsample_bicubic2d
            upsample_bilinear2d_backward logit logaddexp""",
            PerElement(of_output=2),
        ),
        **family.each(
            """copy _to_copy clone contiguous zero zeros ones full fill empty zeros_like ones_like full_like
            new_zeros new_ones new_full arange linspace eye scalar_tensor cat stack slice_backward
            select_backward slice_scatter select_scatter as_strided_scatter constant_pad_nd pad
            reflection_pad2d roll flip repeat repeat_interleave tril triu masked_select nonzero sort topk
            argsort _unique2 unique_consecutive rand randn randint randperm rand_like randn_like randint_like
            uniform normal random exponential multinomial one_hot _pack_padded_sequence
            _pack_padded_sequence_backward _amp_update_scale detach_copy lift_fresh_copy searchsorted
            bucketize bincount histc unfold_backward col2im im2col pixel_shuffle _reshape_copy
            split_with_sizes_copy expand_copy view_copy masked_scatter diagonal_backward tril_indices
            triu_indices full_out""",
            MOVES,
        ),
    },
    traffic={
        # An input gives the shape alone.
        **family.each(
            """zero zeros ones full fill zeros_like ones_like full_like new_zeros new_ones new_full arange
            linspace eye scalar_tensor rand randn randint randperm rand_like randn_like randint_like uniform
            normal random exponential bernoulli _foreach_zero""",
            lambda _, outputs, _attributes: total_bytes(outputs),
        ),
        # In-place copies do not read what they overwrite.
        **family.each(
            "copy _foreach_copy", lambda inputs, outputs, _: total_bytes([*inputs[len(outputs) :], *outputs])
        ),
        # FSDP2 copies its shards or gradients into a buffer, and what was gathered into parameters.
        **family.each(
            "fsdp::all_gather_copy_in fsdp::chunk_cat", lambda inputs, *_: 2 * total_bytes(inputs[:-1])
        ),
        "fsdp::split_with_sizes_copy": lambda inputs, *_: 2 * total_bytes(inputs[:1]),
    },
    calibrates="streaming_fraction",
    stream=_stream,
    learned=(_POINTWISE,),
    autocast=family.Autocast(
        full=family.names(
            """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus
            cumprod cumsum upsample_nearest2d upsample_bilinear2d upsample_bicubic2d"""
        )
    ),
    cases={"elementwise": _cases},
    calibration_cases=_calibration_cases,
)


# Page-locked copies reach this share of the PCIe rate (16 GB/s links deliver about 12 to 13).
PCIE_FRACTION = 0.8
_COPIES = "advisor::h2d_copy advisor::d2h_copy"


def _time(op: Op, roofs: family.Roofs) -> family.RooflineTime:
    link_s = op.bytes / (PCIE_FRACTION * roofs.gpu.pcie_bytes_per_s)
    return family.RooflineTime(time_s=roofs.launch_s + link_s, constant="")


def _transfer_cases(index: int, caps: case.Caps) -> Iterator[case.Case]:
    for name in ("h2d_copy", "d2h_copy"):
        draw = case.Draw(name, index)
        shape = (min(draw.size(2**10, 2**26), caps.num_bytes // 8),)
        on_host, on_device = tensor(shape, "float32", on_host=True), tensor(shape, "float32")
        ends = (on_host, on_device) if name == "h2d_copy" else (on_device, on_host)
        operation = case.Call(operator=f"advisor::{name}", arguments=ends)
        yield case.Case(family="transfer", dtype="float32", call=operation)


TRANSFER = family.Family(
    word="host transfer",
    nominal=family.each(_COPIES, MOVES),
    traffic=family.each(_COPIES, lambda inputs, outputs, _: max(total_bytes(inputs), total_bytes(outputs))),
    time=_time,
    cases={"transfer": _transfer_cases},
)
