"""Leave one GPU out: rows and kernels of a GPU, predicted by what was trained without it.

The same again after a calibration: a minute on the new GPU, 20 measured kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec, Trace
from advisor.predict.knowledge import Knowledge
from benchmarks.accuracy.end_to_end import evaluate
from benchmarks.accuracy.label_noise import LabelNoise
from benchmarks.accuracy.models import Workload
from benchmarks.accuracy.op_predictions import errors_of_seeds
from benchmarks.accuracy.rows import Measured
from research.training.overhead import Floors
from research.training.samples import Samples

Calibrate = Callable[[Knowledge, GpuSpec, Samples, Floors], Knowledge]
# Kinds and how many kernels of them a calibration measures.
_DRAWN = (
    (("linear", "bmm"), 8),
    (("add", "addu", "mul", "mulu", "div", "divu", "pow", "powu", "relu", "gelu", "tanh"), 6),
    (("softmax", "ln"), 6),
    (("conv",), 4),
)
_CALIBRATION_KERNELS = 20
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernels:
    """Measured calls, and what launching and timing them cost."""

    samples: Samples
    floors_s: Floors


def drawn(samples: Samples, gpu: str) -> Samples:
    """20 kernels of a GPU as a calibration would measure them: of each kind among the larger half.

    They are of the training split where it has the kind. Convolutions serve where the rest is not 20.
    """
    rng = np.random.default_rng(_SEED)
    sizes = np.array([op.flops + op.bytes for op in samples.ops])
    chosen: list[int] = []
    for kinds, number in _DRAWN:
        of_kinds = (samples.gpus == gpu) & np.isin(samples.kinds, kinds)
        in_training = of_kinds & (samples.splits == "train")
        pool = np.flatnonzero(in_training if in_training.any() else of_kinds)
        number = min(number, len(pool), _CALIBRATION_KERNELS - len(chosen))
        if number:
            larger = pool[sizes[pool] >= np.median(sizes[pool])]
            chosen += rng.choice(larger, min(number, len(larger)), replace=False).tolist()
    mask = np.zeros(len(samples.ops), dtype=bool)
    mask[chosen] = True
    return samples.where(mask)


def leave_one_out(
    left_out: Mapping[str, Mapping[str, Knowledge]],
    rows: Sequence[Measured],
    traces: Mapping[Workload, Trace],
    noise: Sequence[LabelNoise | None],
    kernels: MeasuredKernels | None,
    calibrate: Calibrate | None = None,
) -> dict[str, Any]:
    """By GPU: its rows and kernels ``unseen``, and ``calibrated`` where there is a calibration."""
    results: dict[str, Any] = {}
    for gpu, members in left_out.items():
        results[gpu] = {"unseen": _scored(gpu, members, rows, traces, noise, kernels)}
        if calibrate is not None and kernels is not None:
            few, spec = drawn(kernels.samples, gpu), load_gpus()[gpu]
            adapted = {
                name: calibrate(member, spec, few, kernels.floors_s) for name, member in members.items()
            }
            results[gpu]["calibrated"] = _scored(gpu, adapted, rows, traces, noise, kernels)
    return results


def _scored(
    gpu: str,
    members: Mapping[str, Knowledge],
    rows: Sequence[Measured],
    traces: Mapping[Workload, Trace],
    noise: Sequence[LabelNoise | None],
    kernels: MeasuredKernels | None,
) -> dict[str, Any]:
    own = [(row, label) for row, label in zip(rows, noise, strict=True) if row.gpu.name == gpu]
    scored: dict[str, Any] = {"rows": [], "summary": {}, "kernels": []}
    if own:
        scored |= evaluate([row for row, _ in own], traces, members, [label for _, label in own])
    if kernels is not None:
        of_gpu = kernels.samples.where(kernels.samples.gpus == gpu)
        errors = errors_of_seeds(of_gpu, members.values(), kernels.floors_s)
        scored["kernels"] = [asdict(error) for error in errors]
    return scored
