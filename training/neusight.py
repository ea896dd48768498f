"""NeuSight's published kernel measurements as operators of a profile.

One ``KIND.csv.gz`` an operator, with the columns ``gpu, split, latency_ms`` and dimensions (``B, H`` rows and
columns; ``B, M, N, K`` for products; see the folder's README). PyTorch 2.1.0, CUDA 12.1, true FP32.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import AttributeValue, Op, Phase, TensorSpec
from training.samples import Samples

_FLOAT_BYTES = 4
_POINTWISE = {
    "add": ("aten::add.Tensor", 2), "addu": ("aten::add.Tensor", 1), "mul": ("aten::mul.Tensor", 2),
    "mulu": ("aten::mul.Tensor", 1), "div": ("aten::div.Tensor", 2), "divu": ("aten::div.Tensor", 1),
    "pow": ("aten::pow.Tensor_Tensor", 2), "powu": ("aten::pow.Tensor_Scalar", 1), "relu": ("aten::relu", 1),
    "gelu": ("aten::gelu", 1), "tanh": ("aten::tanh", 1), "softmax": ("aten::_softmax", 1),
}  # fmt: skip
# The column N is the inner size and K the output's columns: the grids of all kernels cover M x K.
_PRODUCT = ("B", "M", "K", "N")
_CONVOLUTION = ("B", "in_channels", "out_channels", "kernel_size", "input_size", "stride", "padding")
KINDS = (*_POINTWISE, "ln", "linear", "bmm", "conv")


def read_kernels(folder: Path, kinds: Sequence[str] = KINDS) -> Samples:
    """All measured calls of the kinds that the folder has.

    Raises:
        FileNotFoundError: the folder has none of them.
        InputError: a file is broken, or columns are missing.
    """
    found = [kind for kind in kinds if (folder / f"{kind}.csv.gz").exists()]
    if not found:
        raise FileNotFoundError(f"no measured kernels in {str(folder)!r}: expected files such as add.csv.gz")
    return Samples.joined([_read(folder / f"{kind}.csv.gz", kind) for kind in found])


def _read(path: Path, kind: str) -> Samples:
    columns, build = _builder(kind)
    try:
        frame = pd.read_csv(path, usecols=["gpu", "split", "latency_ms", *columns])
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise InputError(f"cannot read measured kernels: {str(path)!r}: {error}") from error
    dims = frame[list(columns)].to_numpy(int).tolist()
    catalog_names = {name: resolve_gpu(name).name for name in frame.gpu.unique()}
    return Samples(
        ops=tuple(build(*row) for row in dims),
        gpus=frame.gpu.map(catalog_names).to_numpy(np.str_),
        time_s=frame.latency_ms.to_numpy(float) * 1e-3,
        kinds=np.full(len(frame), kind),
        splits=frame.split.to_numpy(np.str_),
    )


def _builder(kind: str) -> tuple[tuple[str, ...], Callable[..., Op]]:
    if kind == "linear":
        return _PRODUCT[1:], _linear
    if kind == "bmm":
        return _PRODUCT, _bmm
    if kind == "conv":
        return _CONVOLUTION, _convolution
    if kind == "ln":
        return ("B", "H"), _layer_norm
    name, operands = _POINTWISE[kind]
    return ("B", "H"), lambda rows, columns: _pointwise(name, operands, rows, columns)


def _tensor(*shape: int) -> TensorSpec:
    stride = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return TensorSpec(shape=shape, dtype="float32", stride=stride)


def _op(
    name: str,
    inputs: Sequence[TensorSpec],
    output: TensorSpec,
    flops: int,
    attributes: dict[str, AttributeValue] | None = None,
) -> Op:
    elements = sum(math.prod(tensor.shape) for tensor in (*inputs, output))
    return Op(
        name=name,
        phase=Phase.FORWARD,
        inputs=tuple(inputs),
        outputs=(output,),
        attributes=attributes or {},
        flops=flops,
        bytes=_FLOAT_BYTES * elements,
        count=1,
    )


@cache
def _pointwise(name: str, operands: int, rows: int, columns: int) -> Op:
    return _op(name, [_tensor(rows, columns)] * operands, _tensor(rows, columns), rows * columns)


@cache
def _layer_norm(rows: int, columns: int) -> Op:
    inputs = [_tensor(rows, columns), _tensor(columns), _tensor(columns)]
    return _op("aten::native_layer_norm", inputs, _tensor(rows, columns), 5 * rows * columns)


@cache
def _linear(m: int, n: int, k: int) -> Op:
    weight = TensorSpec(shape=(k, n), dtype="float32", stride=(1, k))
    return _op("aten::addmm", [_tensor(n), _tensor(m, k), weight], _tensor(m, n), 2 * m * n * k)


@cache
def _bmm(b: int, m: int, n: int, k: int) -> Op:
    return _op("aten::bmm", [_tensor(b, m, k), _tensor(b, k, n)], _tensor(b, m, n), 2 * b * m * n * k)


@cache
def _convolution(b: int, c_in: int, c_out: int, kernel: int, size: int, stride: int, padding: int) -> Op:
    out = (size + 2 * padding - kernel) // stride + 1
    return _op(
        "aten::convolution",
        [_tensor(b, c_in, size, size), _tensor(c_out, c_in, kernel, kernel)],
        _tensor(b, c_out, out, out),
        2 * b * c_out * out**2 * c_in * kernel**2,
        {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (1, 1), "transposed": False,
         "output_padding": (0, 0), "groups": 1},
    )  # fmt: skip
