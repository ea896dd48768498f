"""Cases of normalisation, softmax and the loss of classes: they read their input more than once."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.values import Phase
from advisor.measure.case import FLOATS, Argument, Call, Caps, Case, call, dtype_argument, result, tensor
from advisor.measure.draw import Draw, shrunk
from advisor.operators.costs import item_bytes

_EPSILON = 1e-5


def norms(index: int, caps: Caps) -> Iterator[Case]:
    """Layer, group, batch and RMS norm, forward and backward."""
    for row_norm in (_layer_norm, _rms_norm):
        draw = Draw(row_norm.__name__, index)
        dtype = draw.choice(FLOATS)
        rows, columns = _matrix(draw, caps, dtype, draw.choice((1, 8, 64)))
        yield from _both_ways("norm", dtype, *row_norm(rows, columns, dtype))
    for image_norm in (_group_norm, _batch_norm):
        draw = Draw(image_norm.__name__, index)
        dtype = draw.choice(FLOATS)
        yield from _both_ways("norm", dtype, *image_norm(_image(draw, caps, dtype), dtype))


def _layer_norm(rows: int, columns: int, dtype: str) -> tuple[Call, Call]:
    source, scale = _named("source", (rows, columns), dtype), _named("scale", (columns,), dtype)
    forward = call(
        "native_layer_norm", source, [columns], scale, scale, _EPSILON, results=("out", "mean", "rstd")
    )
    backward = call(
        "native_layer_norm_backward", _gradient((rows, columns), dtype), source, [columns],
        result("mean"), result("rstd"), scale, scale, [True, True, True],
    )  # fmt: skip
    return forward, backward


def _rms_norm(rows: int, columns: int, dtype: str) -> tuple[Call, Call]:
    source, scale = _named("source", (rows, columns), dtype), _named("scale", (columns,), dtype)
    forward = call("_fused_rms_norm", source, [columns], scale, _EPSILON, results=("out", "rstd"))
    backward = call(
        "_fused_rms_norm_backward", _gradient((rows, columns), dtype), source, [columns],
        result("rstd"), scale, [True, True],
    )  # fmt: skip
    return forward, backward


def _group_norm(shape: tuple[int, ...], dtype: str) -> tuple[Call, Call]:
    batch, channels, height, width = shape
    source, scale = _named("source", shape, dtype), _named("scale", (channels,), dtype)
    sizes = (batch, channels, height * width, 8)
    forward = call(
        "native_group_norm", source, scale, scale, *sizes, _EPSILON, results=("out", "mean", "rstd")
    )
    backward = call(
        "native_group_norm_backward", _gradient(shape, dtype), source, result("mean"), result("rstd"),
        scale, *sizes, [True, True, True],
    )  # fmt: skip
    return forward, backward


def _batch_norm(shape: tuple[int, ...], dtype: str) -> tuple[Call, Call]:
    """The kernel that torch chooses: cuDNN's but for bfloat16; weights and statistics are always float32."""
    source = _named("source", shape, dtype)
    statistics = [_named(name, shape[1:2], "float32") for name in ("weight", "bias", "mean", "variance")]
    weight, _, mean, variance = statistics
    kept = (weight, mean, variance, result("save_mean"), result("save_variance"))
    gradient = _gradient(shape, dtype)
    if dtype == "bfloat16":
        forward = call(
            "native_batch_norm", source, *statistics, True, 0.1, _EPSILON,
            results=("out", "save_mean", "save_variance"),
        )  # fmt: skip
        return forward, call(
            "native_batch_norm_backward", gradient, source, *kept, True, _EPSILON, [True, True, True]
        )
    forward = call(
        "cudnn_batch_norm", source, *statistics, True, 0.1, _EPSILON,
        results=("out", "save_mean", "save_variance", "reserve"),
    )  # fmt: skip
    return forward, call("cudnn_batch_norm_backward", source, gradient, *kept, _EPSILON, result("reserve"))


def softmaxes(index: int, caps: Caps) -> Iterator[Case]:
    """Softmax of attention scores, log-softmax of classes, forward and backward."""
    for name, multiple in (("_softmax", 64), ("_log_softmax", 1)):
        draw = Draw(name, index)
        dtype = draw.choice(FLOATS)
        shape = _matrix(draw, caps, dtype, multiple)
        forward = call(name, _named("source", shape, dtype), 1, False, results=("out",))
        backward = call(
            f"{name}_backward_data", _gradient(shape, dtype), result("out"), 1, dtype_argument(dtype)
        )
        yield from _both_ways("softmax", dtype, forward, backward)


def losses(index: int, caps: Caps) -> Iterator[Case]:
    """What cross entropy does besides the log-softmax, which autocast makes float32."""
    draw = Draw("nll_loss", index)
    rows, classes = _matrix(draw, caps, "float32", 1)
    scores = _named("scores", (rows, classes), "float32")
    targets = tensor((rows,), "int64", below=classes, name="targets")
    forward = call("nll_loss_forward", scores, targets, None, 1, -100, results=("loss", "total"))
    backward = call(
        "nll_loss_backward", _gradient((), "float32"), scores, targets, None, 1, -100, result("total")
    )
    yield from _both_ways("loss", "float32", forward, backward)


def _matrix(draw: Draw, caps: Caps, dtype: str, multiple: int) -> tuple[int, int]:
    sizes = draw.size(32, 65536), draw.size(64, 32768, multiple)
    rows, columns = shrunk(sizes, lambda *it: 4 * it[0] * it[1] * item_bytes(dtype) <= caps.num_bytes)
    return rows, columns


def _image(draw: Draw, caps: Caps, dtype: str) -> tuple[int, ...]:
    batch, channels, side = draw.size(1, 256), draw.size(16, 1024, 8), draw.size(4, 128)

    def fits(batch: int, side: int) -> bool:
        return 4 * batch * channels * side**2 * item_bytes(dtype) <= caps.num_bytes

    batch, side = shrunk((batch, side), fits, least=2)
    return batch, channels, side, side


def _named(name: str, shape: tuple[int, ...], dtype: str) -> Argument:
    return tensor(shape, dtype, name=name)


def _gradient(shape: tuple[int, ...], dtype: str) -> Argument:
    return tensor(shape, dtype, name="gradient")


def _both_ways(family: str, dtype: str, forward: Call, backward: Call) -> Iterator[Case]:
    yield Case(family=family, dtype=dtype, call=forward)
    yield Case(family=family, dtype=dtype, prepare=(forward,), call=backward, phase=Phase.BACKWARD)
