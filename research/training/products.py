"""Products that ran on tensor cores as operators of a profile: FP16, BF16 and FP8, forward and backward.

``--products DIR`` names a folder of four published sets of kernel times (``product_tables.py``). What they
share is here: which rows count, how many, which of them only judge, and how a row becomes an operator.
"""

from __future__ import annotations

import hashlib
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import InputError
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.work import item_bytes, total_bytes
from advisor.predict.roofline import KERNEL_FLOOR_S
from research.training.product_tables import FORWARD, FP8, SCALINGS, TABLES, Table
from research.training.samples import DataSet, Samples

if TYPE_CHECKING:
    import pandas as pd

_FLAG = "products"
# The shapes that never train, on any GPU and in no direction: they only judge.
_TEST_SHARE = 0.15
# Of a graph's products on different operands, the most that one of these sets replays in turn.
_MOST_REPLAYED = 6
_BLOCK = 128


def read_products(folder: Path) -> Samples:
    """Measured products of every table; of large tables a part of the shapes, the same on every GPU.

    Raises:
        FileNotFoundError: the folder lacks one of the tables.
        InputError: a table is broken.
    """
    missing = [table.file for table in TABLES if not (folder / table.file).is_file()]
    if missing:
        raise FileNotFoundError(f"no {' and no '.join(missing)} in {str(folder)!r}")
    return Samples.joined([read_table(folder, table, share=table.share) for table in TABLES])


def read_table(folder: Path, table: Table, *, share: float) -> Samples:
    """Measured products of one table.

    Args:
        folder: of the measurements.
        table: of ``TABLES``.
        share: of its shapes.

    Raises:
        InputError: it is broken.
    """
    try:
        frame = table.read(folder / table.file)
    except (OSError, EOFError, ValueError, KeyError, AttributeError, zlib.error) as error:
        raise InputError(f"cannot read measured products: {table.file!r}: {error}") from error
    return _samples(frame, share)


def _samples(frame: pd.DataFrame, share: float) -> Samples:
    frame["gpu"] = frame.gpu.map({name: resolve_gpu(name).name for name in frame.gpu.unique()})
    frame["split"], drawn = _drawn(frame)
    frame = frame[(drawn < share) & ~_is_warm(frame)]
    columns = ["dtype", "scaling", "batch", "m", "n", "k", "is_left_t", "is_right_t", "has_addend"]
    return Samples(
        ops=tuple(_product(*row) for row in frame[columns].itertuples(index=False)),
        gpus=frame.gpu.to_numpy(np.str_),
        time_s=frame.time_s.to_numpy(float),
        kinds=frame.kind.to_numpy(np.str_),
        splits=np.where(frame.split < _TEST_SHARE, "test", "train"),
        sources=np.full(len(frame), _FLAG),
    )


def _drawn(frame: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two numbers in [0, 1) of each row, by its sizes in any order: a layer's directions go together."""
    sizes = np.sort(frame[["m", "n", "k"]].to_numpy(int), axis=1)
    keys = np.concatenate([frame[["batch"]].to_numpy(int), sizes], axis=1)
    distinct, index = np.unique(keys, axis=0, return_inverse=True)
    digests = (hashlib.sha256(repr(key).encode()).digest() for key in distinct.tolist())
    numbers = np.array([[int.from_bytes(d[:8]), int.from_bytes(d[8:16])] for d in digests]) / 2.0**64
    split, drawn = numbers[index.ravel()].T
    return split, drawn


def _is_warm(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether L2 holds the operands of a product that goes by its bytes: in training they come from memory.

    Half of the roofline's time in bytes is where it begins to show.
    """
    specs = {name: load_gpus()[name] for name in frame.gpu.unique()}
    peak = frame.gpu.map({name: spec.tensor_flops_per_s["fp16"] for name, spec in specs.items()})
    bytes_per_s = frame.gpu.map({name: spec.memory_bytes_per_s for name, spec in specs.items()})
    l2_bytes = frame.gpu.map({name: spec.l2_bytes for name, spec in specs.items()})
    num_bytes = 2.0 * frame.batch * (frame.m * frame.k + frame.k * frame.n + frame.m * frame.n)
    compute_s = 2.0 * frame.batch * frame.m * frame.n * frame.k / peak
    fits = frame.num_replayed * num_bytes < l2_bytes
    return np.asarray(fits & (num_bytes / bytes_per_s > 0.5 * (compute_s + KERNEL_FLOOR_S)))


@cache
def _product(
    dtype: str,
    scaling: str,
    batch: int,
    m: int,
    n: int,
    k: int,
    is_left_transposed: bool,
    is_right_transposed: bool,
    has_addend: bool,
) -> Op:
    left = _operand(batch, m, k, dtype, is_left_transposed)
    right = _operand(batch, k, n, dtype, is_right_transposed)
    output = _operand(batch, m, n, "bfloat16" if scaling else dtype, is_transposed=False)
    extra = _scales(m, n, k, scaling) if scaling else ()
    inputs = (output, left, right) if has_addend else (left, right, *extra)
    quantised_bytes = m * k * (item_bytes("bfloat16") + item_bytes(dtype)) if scaling else 0
    name = "_scaled_mm" if scaling else "addmm" if has_addend else "mm" if batch == 1 else "bmm"
    return Op(
        name=f"aten::{name}",
        phase=Phase.FORWARD,
        inputs=inputs,
        outputs=(output,),
        attributes={},
        flops=2 * batch * m * n * k,
        # The times of FP8 hold the quantising of the left operand, from two bytes to one.
        bytes=total_bytes(inputs) + total_bytes((output,)) + quantised_bytes,
        count=1,
    )


def _operand(batch: int, rows: int, columns: int, dtype: str, is_transposed: bool) -> TensorSpec:
    stride = (1, rows) if is_transposed else (columns, 1)
    if batch == 1:
        return TensorSpec(shape=(rows, columns), dtype=dtype, stride=stride)
    return TensorSpec(shape=(batch, rows, columns), dtype=dtype, stride=(rows * columns, *stride))


def _scales(m: int, n: int, k: int, scaling: str) -> tuple[TensorSpec, TensorSpec]:
    blocks = -(-k // _BLOCK)
    shapes = dict(
        zip(SCALINGS, (((1,), (1,)), ((m, 1), (1, n)), ((m, blocks), (blocks, -(-n // _BLOCK)))), strict=True)
    )
    left, right = shapes[scaling]
    return TensorSpec(shape=left, dtype="float32"), TensorSpec(shape=right, dtype="float32")


def _cite(samples: Samples) -> str:  # noqa: ARG001
    return "; ".join(table.cite for table in TABLES)


PRODUCTS = DataSet(
    name="aiconfigurator, Vidur, DeepBench and estimate-train-time",
    flag=_FLAG,
    metavar="DIR",
    read=read_products,
    cite=_cite,
    is_timed_on_device=True,
    fits={FORWARD: "gemm_fraction.fp16", FP8: "gemm_fraction.fp8"},
    origin=("Products on tensor cores are fitted to:", *(f"- {table.cite};" for table in TABLES)),
)
