"""Cases that stream through memory: element-wise operators, reductions, pooling, look-ups, transfers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from advisor.core.values import Phase
from advisor.measure.case import (
    FLOATS,
    Argument,
    Call,
    Caps,
    Case,
    call,
    dtype_argument,
    result,
    tensor,
    tensor_bytes,
)
from advisor.measure.draw import Draw, shrunk
from advisor.operators.costs import item_bytes

Shape = tuple[int, ...]
Make = Callable[[Shape, str], Call]


def _map(operator: str, num_tensors: int, *others: Argument, **keywords: Argument) -> Make:
    """A call whose first arguments are tensors of one shape and dtype."""

    def make(shape: Shape, dtype: str) -> Call:
        tensors = [tensor(shape, dtype) for _ in range(num_tensors)]
        return call(operator, *tensors, *others, **keywords)

    return make


def _broadcast(shape: Shape, dtype: str) -> Call:
    return call("add.Tensor", tensor(shape, dtype), tensor((1, shape[1]), dtype))


def _cast(shape: Shape, dtype: str) -> Call:
    target = "float16" if dtype == "float32" else "float32"
    return call("_to_copy", tensor(shape, dtype), dtype=dtype_argument(target))


def _transposing_clone(shape: Shape, dtype: str) -> Call:
    source = tensor(shape, dtype, stride=(1, shape[0]))
    return call("clone", source, memory_format={"memory_format": "contiguous_format"})


def _concatenate(shape: Shape, dtype: str) -> Call:
    return call("cat", [tensor(shape, dtype), tensor(shape, dtype)], 1)


def _dropout_backward(shape: Shape, dtype: str) -> Call:
    return call("native_dropout_backward", tensor(shape, dtype), tensor(shape, "bool"), 1.25)


_FORWARD: Mapping[str, Make] = {
    "add": _map("add.Tensor", 2),
    "add_": _map("add_.Tensor", 2),
    "broadcast": _broadcast,
    "mul": _map("mul.Tensor", 2),
    "scale": _map("mul.Scalar", 1, 0.5),
    "gelu": _map("gelu", 1, approximate="tanh"),
    "relu": _map("relu", 1),
    "silu": _map("silu", 1),
    "dropout": _map("native_dropout", 1, 0.1, True),
    "copy": _map("copy_", 2),
    "cast": _cast,
    "clone": _transposing_clone,
    "cat": _concatenate,
    "fill": _map("zero_", 1),
}
_BACKWARD: Mapping[str, Make] = {
    "gelu_backward": _map("gelu_backward", 2, approximate="tanh"),
    "relu_backward": _map("threshold_backward", 2, 0),
    "silu_backward": _map("silu_backward", 2),
    "dropout_backward": _dropout_backward,
}
_REDUCTIONS: Mapping[str, Make] = {
    "sum of columns": _map("sum.dim_IntList", 1, [0], True),
    "mean of rows": _map("mean.dim", 1, [1], True),
    "norm": _map("linalg_vector_norm", 1),
}


def elementwise(index: int, caps: Caps) -> Iterator[Case]:
    """Element-wise operators, copies and casts, each with a size and dtype of its own."""
    yield from _streams("elementwise", _FORWARD, Phase.FORWARD, index, caps)
    yield from _streams("elementwise", _BACKWARD, Phase.BACKWARD, index, caps)


def reductions(index: int, caps: Caps) -> Iterator[Case]:
    """Sums over rows, columns and all: gradients of biases, pooled features, gradient clipping."""
    yield from _streams("reduction", _REDUCTIONS, Phase.BACKWARD, index, caps)


def _streams(family: str, makers: Mapping[str, Make], phase: Phase, index: int, caps: Caps) -> Iterator[Case]:
    for name, make in makers.items():
        draw = Draw(name, index)
        dtype = draw.choice(FLOATS)
        sizes = draw.size(16, 65536), draw.size(16, 16384, draw.choice((1, 8, 64)))

        def fits(rows: int, columns: int, make: Make = make, dtype: str = dtype) -> bool:
            return 2 * tensor_bytes(make((rows, columns), dtype).arguments) <= caps.num_bytes

        operation = make(shrunk(sizes, fits), dtype)
        yield Case(family=family, dtype=dtype, phase=phase, call=operation)


def pooling(index: int, caps: Caps) -> Iterator[Case]:
    """Maximum pooling as in ResNet and VGG, forward and backward."""
    draw = Draw("pooling", index)
    dtype = draw.choice(FLOATS)
    kernel, padding = draw.choice(((3, 1), (2, 0)))
    channels = draw.size(16, 512, 8)
    sizes = draw.size(1, 256), draw.size(8, 128, 2)

    def fits(batch: int, side: int) -> bool:
        return 5 * batch * channels * side**2 * item_bytes(dtype) <= caps.num_bytes

    batch, side = shrunk(sizes, fits, least=4)
    side = max(4, side // 2 * 2)
    source = tensor((batch, channels, side, side), dtype, name="source")
    window = ([kernel] * 2, [2, 2], [padding] * 2, [1, 1], False)
    forward = call("max_pool2d_with_indices", source, *window, results=("out", "indices"))
    gradient = tensor((batch, channels, side // 2, side // 2), dtype)
    backward = call("max_pool2d_with_indices_backward", gradient, source, *window, result("indices"))
    yield Case(family="pooling", dtype=dtype, call=forward)
    yield Case(family="pooling", dtype=dtype, prepare=(forward,), call=backward, phase=Phase.BACKWARD)


def lookups(index: int, caps: Caps) -> Iterator[Case]:
    """Embeddings forward and backward, and the other ways to pick rows and elements."""
    draw = Draw("lookup", index)
    dtype = draw.choice(FLOATS)
    sizes = draw.size(256, 65536), draw.size(16, 2048, 8), draw.size(64, 65536)

    def fits(rows: int, width: int, picks: int) -> bool:
        return 4 * max(rows, picks) * width * item_bytes(dtype) <= caps.num_bytes

    rows, width, picks = shrunk(sizes, fits)
    table, indices = tensor((rows, width), dtype), tensor((picks,), "int64", below=rows)
    picked = tensor((picks, width), dtype)
    wide = tensor((picks, width), "int64", below=rows)
    forward = (
        call("embedding", table, indices),
        call("index_select", table, 0, indices),
        call("index.Tensor", table, [indices]),
        call("gather", table, 0, wide),
    )
    backward = (
        call("embedding_dense_backward", picked, indices, rows, -1, False),
        call("index_add_", table, 0, indices, picked),
    )
    for operation in forward:
        yield Case(family="embedding", dtype=dtype, call=operation)
    for operation in backward:
        yield Case(family="embedding", dtype=dtype, phase=Phase.BACKWARD, call=operation)


def transfers(index: int, caps: Caps) -> Iterator[Case]:
    """Copies between page-locked memory of the host and the device."""
    for name in ("h2d_copy", "d2h_copy"):
        draw = Draw(name, index)
        shape = (min(draw.size(2**10, 2**26), caps.num_bytes // 8),)
        on_host, on_device = tensor(shape, "float32", on_host=True), tensor(shape, "float32")
        ends = (on_host, on_device) if name == "h2d_copy" else (on_device, on_host)
        assert prod(shape) > 0  # noqa: S101 - caps are larger than one element
        operation = Call(operator=f"advisor::{name}", arguments=ends)
        yield Case(family="transfer", dtype="float32", call=operation)
