"""Normalisation and softmax: they read their input more than once."""

import math
from collections.abc import Iterator
from typing import cast

from advisor.core.values import Op
from advisor.operators import case, cycles
from advisor.operators.convolution import is_channels_last
from advisor.operators.family import FULL_RATES, Autocast, Family, Learned, base_name, each, names
from advisor.operators.work import PerElement, item_bytes, padding

# How many dimensions at the end are normalised together: given by a weight, or one.
_LAYER_NORM = {"native_layer_norm": 1, "native_layer_norm_backward": 4}
_SOFTMAX = names("_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data")


def _features(op: Op) -> tuple[float, ...] | None:
    columns = _normalised(op)
    if columns is None:
        return None
    rows = math.prod(op.inputs[0].shape) // max(columns, 1)
    kind = _IN_HALVES.get(base_name(op.name), "")
    is_unlike = cycles.row_kind(kind, columns, item_bytes(op.inputs[0].dtype)).endswith(cycles.LONGEST_ROWS)
    if not rows or not columns or is_unlike:
        return None
    power = 2 ** math.ceil(math.log2(columns))
    return (
        float(base_name(op.name) in _LAYER_NORM),
        math.log(columns),
        math.log(power / columns),
        padding(columns, 4),
        padding(columns, 32),
        float(columns > 1024),  # beyond, softmax takes a block instead of a warp for each row
        math.log(rows * columns),
    )


# Kinds of ``streams.toml``; a group's norm was not measured, and is taken for a layer's.
_IN_HALVES = {
    **each("native_layer_norm native_group_norm", "layer norm forward"),
    **each("native_layer_norm_backward native_group_norm_backward", "layer norm backward"),
    "_fused_rms_norm": "RMS norm forward",
    "_fused_rms_norm_backward": "RMS norm backward",
    **each("_softmax _log_softmax", "softmax forward"),
    **each("_softmax_backward_data _log_softmax_backward_data", "softmax backward"),
}
# cuDNN's, whatever a profile without a GPU calls them.
_BATCH_NORMS = {
    **each("native_batch_norm cudnn_batch_norm _batch_norm_with_update", "forward"),
    **each("native_batch_norm_backward cudnn_batch_norm_backward batch_norm_backward", "backward"),
}
# Of images, volumes, and series: not of vectors.
_LEAST_DIMENSIONS = 3


def _stream(op: Op) -> cycles.StreamedCall | None:
    """In 16 bits what an SM does in a clock counts; other precisions are a roofline.

    But for a softmax of classes as many as a vocabulary's, which reads each row three times, and batch norms.
    """
    kind, is_complete = _IN_HALVES.get(base_name(op.name)), bool(op.inputs and op.outputs)
    if is_complete and base_name(op.name) in _BATCH_NORMS:
        return _channel_stream(op)
    if kind is None or not is_complete:
        return None
    elements = math.prod(op.inputs[0].shape)
    # What is normalised together, where nothing else was recorded: the last dimension.
    columns = max(_normalised(op) or op.inputs[0].shape[-1], 1)
    kind = cycles.row_kind(kind, columns, item_bytes(op.inputs[0].dtype))
    if not cycles.is_half(op) and not kind.endswith(cycles.LONGEST_ROWS):
        return None
    return cycles.StreamedCall(
        cost=cycles.stream_costs()[kind], work=cycles.row_work(kind, elements // columns, columns, op.bytes)
    )


def _channel_stream(op: Op) -> cycles.StreamedCall | None:
    """A batch norm: in any precision with its channels first, in 16 bits with them last; else a roofline."""
    source, is_training = op.inputs[0], op.attributes.get("training", True)
    is_last = is_channels_last(source)
    if len(source.shape) < _LEAST_DIMENSIONS or not is_training or (is_last and not cycles.is_half(op)):
        return None
    channels, size = source.shape[1], item_bytes(source.dtype)
    elements = math.prod(source.shape) // max(channels, 1)
    kind = cycles.channel_kind(_BATCH_NORMS[base_name(op.name)], elements, size, is_last=is_last)
    return cycles.StreamedCall(
        cost=cycles.stream_costs()[kind], work=cycles.channel_work(kind, channels, elements, size)
    )


def _normalised(op: Op) -> int | None:
    """How many elements are normalised together; None where a profiler did not say."""
    shape, name = op.inputs[0].shape, base_name(op.name)
    given = op.attributes.get("normalized_shape")
    if given is not None:
        return math.prod(cast("tuple[int, ...]", given))
    if name in _LAYER_NORM:
        place = _LAYER_NORM[name]
        return math.prod(op.inputs[place].shape) if len(op.inputs) > place else None
    if "group" in op.attributes:
        return math.prod(shape[1:]) // cast("int", op.attributes["group"])
    dim = op.attributes.get("dim", -1 if len(shape) <= 2 else None)
    return None if dim is None else shape[cast("int", dim)] if shape else 1


_EPSILON = 1e-5
_ROWS, _COLUMNS = 32768, 2048


def _norms(index: int, caps: case.Caps) -> Iterator[case.Case]:
    for row_norm in (_layer_norm, _rms_norm):
        draw = case.Draw(row_norm.__name__, index)
        dtype = draw.choice(case.FLOATS)
        rows, columns = _matrix(draw, caps, dtype, draw.choice((1, 8, 64)))
        yield from case.both_ways("norm", dtype, *row_norm(rows, columns, dtype))
    for image_norm in (_group_norm, _batch_norm):
        draw = case.Draw(image_norm.__name__, index)
        dtype = draw.choice(case.FLOATS)
        yield from case.both_ways("norm", dtype, *image_norm(_image(draw, caps, dtype), dtype))


def _layer_norm(rows: int, columns: int, dtype: str) -> tuple[case.Call, case.Call]:
    source, scale = _named("source", (rows, columns), dtype), _named("scale", (columns,), dtype)
    forward = case.call(
        "native_layer_norm", source, [columns], scale, scale, _EPSILON, results=("out", "mean", "rstd")
    )
    backward = case.call(
        "native_layer_norm_backward", _named("gradient", (rows, columns), dtype), source, [columns],
        case.result("mean"), case.result("rstd"), scale, scale, [True, True, True],
    )  # fmt: skip
    return forward, backward


def _rms_norm(rows: int, columns: int, dtype: str) -> tuple[case.Call, case.Call]:
    source, scale = _named("source", (rows, columns), dtype), _named("scale", (columns,), dtype)
    forward = case.call("_fused_rms_norm", source, [columns], scale, _EPSILON, results=("out", "rstd"))
    backward = case.call(
        "_fused_rms_norm_backward", _named("gradient", (rows, columns), dtype), source, [columns],
        case.result("rstd"), scale, [True, True],
    )  # fmt: skip
    return forward, backward


def _group_norm(shape: tuple[int, ...], dtype: str) -> tuple[case.Call, case.Call]:
    batch, channels, height, width = shape
    source, scale = _named("source", shape, dtype), _named("scale", (channels,), dtype)
    sizes = (batch, channels, height * width, 8)
    forward = case.call(
        "native_group_norm", source, scale, scale, *sizes, _EPSILON, results=("out", "mean", "rstd")
    )
    backward = case.call(
        "native_group_norm_backward", _named("gradient", shape, dtype), source, case.result("mean"),
        case.result("rstd"), scale, *sizes, [True, True, True],
    )  # fmt: skip
    return forward, backward


def _batch_norm(shape: tuple[int, ...], dtype: str) -> tuple[case.Call, case.Call]:
    """The kernel that torch chooses: cuDNN's but for bfloat16; weights and statistics are always float32."""
    source = _named("source", shape, dtype)
    statistics = [_named(name, shape[1:2], "float32") for name in ("weight", "bias", "mean", "variance")]
    weight, _, mean, variance = statistics
    kept = (weight, mean, variance, case.result("save_mean"), case.result("save_variance"))
    gradient = _named("gradient", shape, dtype)
    if dtype == "bfloat16":
        forward = case.call(
            "native_batch_norm", source, *statistics, True, 0.1, _EPSILON,
            results=("out", "save_mean", "save_variance"),
        )  # fmt: skip
        return forward, case.call(
            "native_batch_norm_backward", gradient, source, *kept, True, _EPSILON, [True, True, True]
        )
    forward = case.call(
        "cudnn_batch_norm", source, *statistics, True, 0.1, _EPSILON,
        results=("out", "save_mean", "save_variance", "reserve"),
    )  # fmt: skip
    return forward, case.call(
        "cudnn_batch_norm_backward", source, gradient, *kept, _EPSILON, case.result("reserve")
    )


def _softmaxes(index: int, caps: case.Caps) -> Iterator[case.Case]:
    for name, multiple in (("_softmax", 64), ("_log_softmax", 1)):
        draw = case.Draw(name, index)
        dtype = draw.choice(case.FLOATS)
        shape = _matrix(draw, caps, dtype, multiple)
        forward = case.call(name, _named("source", shape, dtype), 1, False, results=("out",))
        gradient, kind = _named("gradient", shape, dtype), case.dtype_argument(dtype)
        backward = case.call(f"{name}_backward_data", gradient, case.result("out"), 1, kind)
        yield from case.both_ways("softmax", dtype, forward, backward)


def _matrix(draw: case.Draw, caps: case.Caps, dtype: str, multiple: int) -> tuple[int, ...]:
    sizes = draw.size(32, 65536), draw.size(64, 32768, multiple)
    return case.shrunk(sizes, lambda *it: caps.allow(4 * math.prod(it), dtype))


def _image(draw: case.Draw, caps: case.Caps, dtype: str) -> tuple[int, ...]:
    batch, channels, side = draw.size(1, 256), draw.size(16, 1024, 8), draw.size(4, 128)
    batch, side = case.shrunk(
        (batch, side), lambda batch, side: caps.allow(4 * batch * channels * side**2, dtype), least=2
    )
    return batch, channels, side, side


def _named(name: str, shape: tuple[int, ...], dtype: str) -> case.Argument:
    return case.tensor(shape, dtype, name=name)


def _calibration_cases() -> Iterator[case.Case]:
    for dtype in case.FLOATS:
        source, scale = case.tensor((_ROWS, _COLUMNS), dtype), case.tensor((_COLUMNS,), dtype)
        layer_norm = case.call("native_layer_norm", source, [_COLUMNS], scale, scale, 1e-5)
        yield case.Case(family="norm", dtype=dtype, call=layer_norm)
        yield case.Case(family="softmax", dtype=dtype, call=case.call("_softmax", source, 1, False))


_NETWORK = Learned(
    name="norm", names=_SOFTMAX | frozenset(_LAYER_NORM), num_features=7, features=_features,
    counts_flops=False, steps=5000, rates=FULL_RATES,
)  # fmt: skip


NORM = Family(
    word="norm and softmax",
    others=names(
        """batch_norm_stats batch_norm_gather_stats_with_counts batch_norm_elemt batch_norm_backward_reduce
        batch_norm_backward_elemt"""
    ),
    nominal={
        **each(
            """_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_batch_norm
            cudnn_batch_norm miopen_batch_norm native_layer_norm native_group_norm _fused_rms_norm
            _native_batch_norm_legit _batch_norm_with_update _native_batch_norm_legit_no_training""",
            PerElement(of_output=5),
        ),
        **each(
            """native_batch_norm_backward cudnn_batch_norm_backward native_layer_norm_backward
            native_group_norm_backward batch_norm_backward _fused_rms_norm_backward""",
            PerElement(of_output=8),
        ),
    },
    bandwidth="reduction_fraction",
    calibrates="reduction_fraction",
    stream=_stream,
    learned=(_NETWORK,),
    autocast=Autocast(
        full=names("native_layer_norm native_group_norm _fused_rms_norm _softmax"), keeps_dtype=True
    ),
    cases={"norm": _norms, "softmax": _softmaxes},
    calibration_cases=_calibration_cases,
)
