"""Convolutions of AMD's find database: the best solver's time of each shape, re-tabulated from MIOpen.

``gpu, dtype, layout, pass``, dimensions, ``best_time_ms``: fp32, fp16 and bf16, what is left after tuning.
Of boards with several dies a row is of one. The table is large, so a part of its shapes is read.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from advisor.core.errors import InputError
from advisor.core.gpus import load_gpus
from research.training.convolution_calls import Geometry, Pair, convolution_call
from research.training.samples import DataSet, Samples

_FLAG = "miopen"
# Those of the catalog, a MI210 is one such die; and the part of the shapes that is read.
_GPUS = {"MI100": ("MI100", 0.15), "MI210/MI250-GCD": ("MI210", 0.15), "MI300X": ("MI300X", 1.0)}
_RATES = {"FP32": "fp32", "FP16": "fp16", "BF16": "bf16"}
_DTYPES = {"FP32": "float32", "FP16": "float16", "BF16": "bfloat16"}
_DIRECTIONS = {"fwd": "forward", "bwd_data": "backward_data", "bwd_weights": "backward_weights"}
# Some rows are of solvers that did nothing: Winograd saves at most 5/9 of the multiplications of a 3 x 3.
_MOST_OF_PEAK = 2.25


def read_convolutions(path: Path) -> Samples:
    """The calls of CDNA boards of the catalog; a third of the shapes only judges.

    Raises:
        InputError: missing or broken, or columns are missing.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path)
        frame = frame[frame["gpu"].isin(list(_GPUS)) & frame["dtype"].isin(list(_RATES))]
        rows = [(row, shape) for row in frame.to_dict("records") if _is_read(row, shape := _geometry(row))]
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise InputError(f"cannot read MIOpen's find database: {str(path)!r}: {error}") from error
    return Samples(
        ops=tuple(
            convolution_call(
                shape,
                batch=int(row["batch"]),
                dtype=_DTYPES[row["dtype"]],
                direction=_DIRECTIONS[row["pass"]],
                is_channels_last=row["layout"] == "NHWC",
            )
            for row, shape in rows
        ),
        gpus=np.array([_GPUS[row["gpu"]][0] for row, _ in rows]),
        time_s=np.array([row["best_time_ms"] * 1e-3 for row, _ in rows]),
        kinds=np.array([f"miopen {row['pass']} {row['dtype'].lower()}" for row, _ in rows]),
        splits=np.array(["test" if shape.only_judges else "train" for _, shape in rows]),
        sources=np.full(len(rows), _FLAG),
    )


def _is_read(row: dict[str, object], shape: Geometry) -> bool:
    name, part = _GPUS[str(row["gpu"])]
    peak = load_gpus()[name].tensor_flops_per_s[_RATES[str(row["dtype"])]]
    flops_per_s = float(str(row["tflops"])) * 1e12
    return shape.drawn < part and flops_per_s <= _MOST_OF_PEAK * peak


def _geometry(row: dict[str, object]) -> Geometry:
    def pair(text: object) -> Pair:
        height, _, width = str(text).partition("x")
        return int(height), int(width)

    sizes = {name: int(str(row[name])) for name in _SIZES}
    return Geometry(
        in_channels=sizes["in_channels"],
        size=(sizes["in_h"], sizes["in_w"]),
        out_channels=sizes["out_channels"],
        out=(sizes["out_h"], sizes["out_w"]),
        filter=(sizes["k_h"], sizes["k_w"]),
        padding=pair(row["pad"]),
        stride=pair(row["stride"]),
        dilation=pair(row["dilation"]),
        groups=sizes["groups"],
    )


_SIZES = (
    "in_channels", "in_h", "in_w", "out_channels", "out_h", "out_w", "k_h", "k_w", "groups",
)  # fmt: skip


def _cite(samples: Samples) -> str:  # noqa: ARG001
    return "MIOpen's find database (ROCm/MIOpen, MIT licence, 2023-05 to 2024-09)"


MIOPEN = DataSet(
    name="MIOpen",
    flag=_FLAG,
    metavar="FILE",
    read=read_convolutions,
    cite=_cite,
    is_timed_on_device=True,
    fits={f"miopen fwd {rate}": f"conv_fraction.{rate}" for rate in ("fp32", "fp16", "bf16")},
    origin=("conv_fraction of MI boards: MIOpen (MIT licence, 2023-05 to 2024-09).",),
)
