"""Measured batch norms: profiles of whole steps on GPUs.

Ours are in ``research/measured``; the V100's is a profile of ResNet-50 in FP32 from pytorch/kineto. In both,
cuDNN's kernels have the same names, five years apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec
from advisor.kineto.export import read_kineto
from advisor.operators.cycles import channel_kind
from research.gpu_day.operators import read_operators
from research.gpu_day.results import read_day
from research.training.stream_tables import MeasuredStream

MEASURED = Path(__file__).parents[1] / "measured"
_DIRECTIONS = {"cudnn_batch_norm": "forward", "cudnn_batch_norm_backward": "backward"}
_ITEM_BYTES = {"c10::Half": 2, "float": 4}
_KINETO, _KINETO_GPU = "resnet50_v100_2021-06.pt.trace.json.gz", "V100-SXM2-32GB"
_FORWARD, _BACKWARD = 2, 3
# Profilers time a kernel without its launch: these sources add nothing of their own.
KERNELS_ALONE = frozenset({"profiles", "kineto"})


def batch_norm_rows(kineto: Path) -> Iterator[MeasuredStream]:
    """All of them.

    Args:
        kineto: the folder of pytorch/kineto's profiles.

    Raises:
        FileNotFoundError: a file is missing.
    """
    for folder in sorted(path.parent for path in MEASURED.glob("*/operators.csv.gz")):
        yield from _profiled(folder)
    yield from _of_kineto(kineto / _KINETO)


def _profiled(folder: Path) -> Iterator[MeasuredStream]:
    gpu = resolve_gpu(read_day(folder).device)
    for row in read_operators(folder):
        if row["operator"] in _DIRECTIONS:
            shape = tuple(map(int, row["shapes"].split()[0].split("x")))
            time_s = 1e-6 * float(row["kernels_us"]) / int(row["calls"])
            size = _ITEM_BYTES[row["dtype"]]
            is_last = "/channels_last/" in row["step"]
            direction = _DIRECTIONS[row["operator"]]
            yield _measured("profiles", gpu, direction, shape, (size, time_s), is_last=is_last)


def _of_kineto(path: Path) -> Iterator[MeasuredStream]:
    for op in read_kineto(path).ops:
        direction = _DIRECTIONS.get(op.name.removeprefix("aten::"))
        if direction and op.measured_s:
            measured = (4, op.measured_s)
            yield _measured("kineto", load_gpus()[_KINETO_GPU], direction, op.inputs[0].shape, measured)


def _measured(
    source: str, gpu: GpuSpec, direction: str, shape: tuple[int, ...], measured: tuple[int, float],
    *, is_last: bool = False,
) -> MeasuredStream:  # fmt: skip
    size, time_s = measured
    channels = shape[1]
    elements = math.prod(shape) // channels
    return MeasuredStream(
        kind=channel_kind(direction, elements, size, is_last=is_last),
        source=source,
        gpu=gpu,
        rows=channels,
        columns=elements,
        tensors=_FORWARD if direction == "forward" else _BACKWARD,
        time_s=time_s,
        item_bytes=size,
    )
