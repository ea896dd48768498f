"""Whole steps of convolution networks on more boards than timm's one, for the same network.

Lambda Labs' ResNet-50 in half precision with channels first, and what a GPU's day (``research/gpu_day``)
recorded of half of its convolution networks, by a hash of their names; the other half only judges.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.operators.family import names
from research.gpu_day.report import profiled
from research.gpu_day.results import read_day
from research.lambda_steps import Row, read_rows, trace_of
from research.training.drawn import fraction_of
from research.training.whole_steps import LAYOUTS, Step

NETWORK = "resnet50"
_HALVES = ("fp16", "bf16", "o2")
_CONVOLUTIONAL = names(
    "resnet50 resnext50_32x4d efficientnet_b0 efficientnet_b4 vgg16 mobilenet_v2 densenet121 unet2d dcgan"
)
_FITTED_SHARE = 0.5
# Up to it the smaller trace is nearer.
_SMALL = 180


def lambda_steps(table: Path, without: Collection[str] = ()) -> list[Step]:
    """ResNet-50 of the table, but for boards of these names.

    Raises:
        OSError: the table cannot be read.
    """
    rows = [row for row in read_rows(table) if row.work.network == NETWORK and row.work.is_half]
    return [_step(row) for row in rows if row.gpu.name not in without]


def _step(row: Row) -> Step:
    batch = row.work.nearest(row.batch)[-1 if row.batch > _SMALL else 0]
    return Step(
        model=NETWORK,
        layout=LAYOUTS[0],
        gpu=row.gpu,
        trace=trace_of(row.work, batch),
        # At that batch: its rate hardly depends on it.
        time_s=row.step_s * batch / row.batch,
        release="NGC",
    )


def is_fitted(network: str) -> bool:
    """Whether a network of a day is of the half that is learned from."""
    return network in _CONVOLUTIONAL and fraction_of(network) < _FITTED_SHARE


def day_steps(folder: Path, traces: Path | None, without: Collection[str] = ()) -> list[Step]:
    """Convolution networks of a day in half precision, unless its board is left out.

    Args:
        folder: of the day.
        traces: where profiles are kept.
        without: names of boards.

    Raises:
        ValueError: the folder holds no day.
        ProfileError: a step cannot be profiled here.
    """
    day = read_day(folder)
    gpu = resolve_gpu(day.device)
    return [
        Step(
            model=timed.step.network,
            layout="channels_last" if timed.step.layout == "channels_last" else LAYOUTS[0],
            gpu=gpu,
            trace=profiled(timed.step, gpu, traces),
            time_s=timed.wall_s,
            release="day",
        )
        for timed in day.steps
        if gpu.name not in without and timed.step.precision in _HALVES and is_fitted(timed.step.network)
    ]
