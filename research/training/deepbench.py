"""DeepBench's convolutions on tensor cores: one ``deepbench_conv.csv.gz``, re-tabulated from its sheets.

V100 and T4, fp16 with sums in fp32, NHWC, cuDNN's IMPLICIT_PRECOMP_GEMM; host clock round 300 calls, so a
call is its launch and its kernel. Channels are those that ran: tensor cores pad to eight.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from research.training.convolution_calls import Geometry, convolution_call
from research.training.samples import DataSet, Samples

_FLAG = "deepbench"
_TENSOR_CORES = "fp16_tensor_core_fp32_add"


def read_convolutions(path: Path) -> Samples:
    """The calls of training on tensor cores; a third of the shapes only judges.

    Raises:
        InputError: missing or broken, or columns are missing.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path)
        rows = frame[(frame["use"] == "train") & (frame["math"] == _TENSOR_CORES)].to_dict("records")
        shapes = [_geometry(row) for row in rows]
        return Samples(
            ops=tuple(
                convolution_call(
                    shape,
                    batch=int(row["n"]),
                    dtype="float16",
                    direction=row["direction"],
                    is_channels_last=row["layout"] == "nhwc",
                )
                for row, shape in zip(rows, shapes, strict=True)
            ),
            gpus=np.array([resolve_gpu(row["gpu"]).name for row in rows]),
            time_s=np.array([row["time_us"] * 1e-6 for row in rows]),
            kinds=np.full(len(rows), "conv fp16"),
            splits=np.array(["test" if shape.only_judges else "train" for shape in shapes]),
            sources=np.full(len(rows), _FLAG),
        )
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise InputError(f"cannot read DeepBench's convolutions: {str(path)!r}: {error}") from error


def _geometry(row: dict[str, int]) -> Geometry:
    return Geometry(
        in_channels=row["c_run"],
        size=(row["h"], row["w"]),
        out_channels=row["k_run"],
        out=(row["out_h"], row["out_w"]),
        filter=(row["filter_h"], row["filter_w"]),
        padding=(row["pad_h"], row["pad_w"]),
        stride=(row["stride_h"], row["stride_w"]),
    )


def _cite(samples: Samples) -> str:  # noqa: ARG001
    return "DeepBench convolutions (baidu-research/DeepBench, Apache-2.0, commit da81ba7, 2020-08-11)"


DEEPBENCH = DataSet(
    name="DeepBench",
    flag=_FLAG,
    metavar="FILE",
    read=read_convolutions,
    cite=_cite,
    is_timed_on_device=True,
    fits={"conv fp16": "conv_fraction.fp16"},
    origin=("conv_fraction.fp16 of V100 and T4: DeepBench (Apache-2.0, commit da81ba7, 2018-2019).",),
)
