"""The kernels of ``advisor calibrate``: a few large ones for each constant."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.measure.case import FLOATS, RATES, Case, call, tensor

# Rows, columns, inner: a square product, a feed-forward layer, a batch of attention scores.
_PRODUCTS = ((4096, 4096, 4096), (8192, 4096, 1024))
_HEADS = (96, 1024, 1024, 128)
# Images, channels in and out, side, filter: two of ResNet-50's convolutions.
_CONVOLUTIONS = ((64, 128, 128, 56, 3), (64, 512, 512, 14, 3))
_ROWS, _COLUMNS = 32768, 2048


def calibration_kernels() -> tuple[Case, ...]:
    """All of them; a device skips the rates it does not have."""
    return (*_streams(), *_reductions(), *_products(), *_convolutions())


def _streams() -> Iterator[Case]:
    for dtype in FLOATS:
        one = tensor((_ROWS, _COLUMNS), dtype)
        yield Case(family="elementwise", dtype=dtype, call=call("add.Tensor", one, one))
        yield Case(family="elementwise", dtype=dtype, call=call("relu", one))


def _reductions() -> Iterator[Case]:
    for dtype in FLOATS:
        source, scale = tensor((_ROWS, _COLUMNS), dtype), tensor((_COLUMNS,), dtype)
        layer_norm = call("native_layer_norm", source, [_COLUMNS], scale, scale, 1e-5)
        yield Case(family="norm", dtype=dtype, call=layer_norm)
        yield Case(family="softmax", dtype=dtype, call=call("_softmax", source, 1, False))


def _products() -> Iterator[Case]:
    batch, rows, columns, inner = _HEADS
    heads = (batch, rows, inner), (batch, inner, columns)
    for dtype, tf32 in RATES:
        for rows, columns, inner in _PRODUCTS:
            product = call("mm", tensor((rows, inner), dtype), tensor((inner, columns), dtype))
            yield Case(family="gemm", dtype=dtype, tf32=tf32, call=product)
        batched = call("bmm", *(tensor(shape, dtype) for shape in heads))
        yield Case(family="bmm", dtype=dtype, tf32=tf32, call=batched)


def _convolutions() -> Iterator[Case]:
    for dtype, tf32 in RATES:
        for images, channels_in, channels_out, side, size in _CONVOLUTIONS:
            source = tensor((images, channels_in, side, side), dtype)
            weight = tensor((channels_out, channels_in, size, size), dtype)
            geometry = ([1, 1], [size // 2] * 2, [1, 1], False, [0, 0], 1)
            convolution = call("convolution", source, weight, None, *geometry)
            yield Case(family="conv", dtype=dtype, tf32=tf32, call=convolution)
