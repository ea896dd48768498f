"""NeuSight's published kernel measurements as operators of a profile.

One ``KIND.csv.gz`` an operator, with the columns ``gpu, split, latency_ms`` and dimensions (``B, H`` rows and
columns; ``B, M, N, K`` for products; see the folder's README). PyTorch 2.1.0, CUDA 12.1, true FP32.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import AttributeValue, Op, Phase, TensorSpec
from research.training.samples import DataSet, Samples

_FLAG = "kernels"
_FLOAT_BYTES = 4
Dims = tuple[str, ...]
_MATRIX: Dims = ("B", "H")
# The column N is the inner size and K the output's columns: the grids of all kernels cover M x K.
_PRODUCT: Dims = ("B", "M", "K", "N")
_CONVOLUTION: Dims = ("B", "in_channels", "out_channels", "kernel_size", "input_size", "stride", "padding")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One file of measurements."""

    columns: Dims
    """Dimensions."""
    build: Callable[..., Op]
    """Dimensions -> the call."""
    fits: str | None = None
    """The constant that its kernels tell, if any."""


def _streaming(name: str, operands: int, fits: str | None = None) -> _Kind:
    return _Kind(columns=_MATRIX, build=partial(_pointwise, name, operands), fits=fits)


KINDS: Mapping[str, _Kind] = {
    "add": _streaming("aten::add.Tensor", 2, "streaming_fraction"),
    "addu": _streaming("aten::add.Tensor", 1),
    "mul": _streaming("aten::mul.Tensor", 2, "streaming_fraction"),
    "mulu": _streaming("aten::mul.Tensor", 1, "streaming_fraction"),
    "div": _streaming("aten::div.Tensor", 2, "streaming_fraction"),
    "divu": _streaming("aten::div.Tensor", 1),
    "pow": _streaming("aten::pow.Tensor_Tensor", 2),
    "powu": _streaming("aten::pow.Tensor_Scalar", 1),
    "relu": _streaming("aten::relu", 1, "streaming_fraction"),
    "gelu": _streaming("aten::gelu", 1, "streaming_fraction"),
    "tanh": _streaming("aten::tanh", 1, "streaming_fraction"),
    "softmax": _streaming("aten::_softmax", 1, "reduction_fraction"),
    "ln": _Kind(columns=_MATRIX, build=_layer_norm, fits="reduction_fraction"),
    "linear": _Kind(columns=_PRODUCT[1:], build=_linear, fits="gemm_fraction.fp32"),
    "bmm": _Kind(columns=_PRODUCT, build=_bmm, fits="gemm_fraction.fp32"),
    "conv": _Kind(columns=_CONVOLUTION, build=_convolution, fits="conv_fraction.fp32"),
}


def read_kernels(folder: Path, kinds: Sequence[str] = tuple(KINDS)) -> Samples:
    """All measured calls of the kinds that the folder has.

    Raises:
        FileNotFoundError: the folder has none of them.
        InputError: a file is broken, or columns are missing.
    """
    existing = [kind for kind in kinds if (folder / f"{kind}.csv.gz").exists()]
    if not existing:
        raise FileNotFoundError(f"no measured kernels in {str(folder)!r}: expected files such as add.csv.gz")
    return Samples.joined([_read(folder / f"{kind}.csv.gz", kind) for kind in existing])


def _read(path: Path, name: str) -> Samples:
    import pandas as pd

    kind = KINDS[name]
    try:
        frame = pd.read_csv(path, usecols=["gpu", "split", "latency_ms", *kind.columns])
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise InputError(f"cannot read measured kernels: {str(path)!r}: {error}") from error
    dims = frame[list(kind.columns)].to_numpy(int).tolist()
    catalog_names = {gpu: resolve_gpu(gpu).name for gpu in frame.gpu.unique()}
    return Samples(
        ops=tuple(kind.build(*row) for row in dims),
        gpus=frame.gpu.map(catalog_names).to_numpy(np.str_),
        time_s=frame.latency_ms.to_numpy(float) * 1e-3,
        kinds=np.full(len(frame), name),
        splits=frame.split.to_numpy(np.str_),
        sources=np.full(len(frame), _FLAG),
    )


def _cite(samples: Samples) -> str:  # noqa: ARG001
    return "NeuSight kernel measurements (ASPLOS'25, MIT licence, commit 6945927)"


NEUSIGHT = DataSet(
    name="NeuSight",
    flag=_FLAG,
    metavar="DIR",
    read=read_kernels,
    cite=_cite,
    is_timed_on_device=False,
    fits={name: kind.fits for name, kind in KINDS.items() if kind.fits},
    origin=(
        "Fitted to NeuSight's published kernel measurements (ASPLOS'25, MIT licence, commit 6945927;",
        "PyTorch 2.1.0, cuDNN 8.9.2, CUDA 12.1, true FP32).",
    ),
)
