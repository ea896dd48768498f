"""Single operators against measured kernels: by kind, GPU and split, and joined.

A measured call holds the cost of launching and timing it, some 25 to 90 us, which a prediction of the kernel
does not: ``research.training.overhead`` fits it on the training split.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.core.values import Z90, GpuSpec, Op
from research.training.overhead import Floors, observed_s
from research.training.samples import Samples

Floats = NDArray[np.float64]
# Seconds of one call of each operator on a GPU, and the log-normal sigma of each.
KernelTimes = Callable[[Sequence[Op], GpuSpec], tuple[Floats, Floats]]
_ABOVE_FLOOR = 1.5
ALL = "all"
# What published figures of other predictors are given for, and the recordings' kinds in it.
GROUPS = {
    "products": ("linear", "bmm"),
    "element-wise": ("add", "addu", "div", "divu", "gelu", "mul", "mulu", "pow", "powu", "relu", "tanh"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelErrors:
    """Errors of one kind on one GPU in one split, as fractions of the measured time."""

    kind: str
    """The recording's name of the operator, a name of ``GROUPS``, or ``all``."""
    gpu: str
    """A name of the catalog, or ``all``."""
    split: str
    rows: int
    floor_s: float | None
    """Seconds of the shortest call; None where kinds with floors of their own are joined."""
    median: float
    mean: float
    p90: float
    bias: float
    """Median of the signed error, positive where predictions are too slow."""
    coverage: float
    """The part of the measurements within p10..p90."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Samples beside their predictions, [N] each."""

    samples: Samples
    floor_s: Floats
    signed: Floats
    """Relative errors."""
    inside: NDArray[np.bool_]
    """Whether p10..p90 holds the measurement."""
    tells: NDArray[np.bool_]
    """Whether the kernel bounds the call; one that only the host bounds says nothing of the kernel, nor of
    its interval."""


def kernel_errors(samples: Samples, kernel_times: KernelTimes, floors_s: Floors) -> list[KernelErrors]:
    """By GPU and split every kind that the samples have and the groups of several; then over all GPUs."""
    judged = _judged(samples, kernel_times, floors_s)
    gpus = np.unique(samples.gpus)
    rows: list[KernelErrors] = []
    for gpu in gpus.tolist():
        rows += _by_split(judged, samples.gpus == gpu, gpu)
    return rows if len(gpus) == 1 else rows + _by_split(judged, np.isin(samples.gpus, gpus), ALL)


def mean_of_seeds(members: Sequence[Sequence[KernelErrors]]) -> list[KernelErrors]:
    """The mean of every figure over errors of the same samples, one list a seed."""
    return [_mean(group) for group in zip(*members, strict=True)]


def _mean(group: Sequence[KernelErrors]) -> KernelErrors:
    def mean(figure: str) -> float:
        return statistics.fmean(getattr(errors, figure) for errors in group)

    return replace(
        group[0],
        median=mean("median"),
        mean=mean("mean"),
        p90=mean("p90"),
        bias=mean("bias"),
        coverage=mean("coverage"),
    )


def _judged(samples: Samples, kernel_times: KernelTimes, floors_s: Floors) -> _Judged:
    p50_s, sigma = np.empty(len(samples.ops)), np.empty(len(samples.ops))
    for gpu in np.unique(samples.gpus):
        own = samples.gpus == gpu
        p50_s[own], sigma[own] = kernel_times(samples.where(own).ops, load_gpus()[str(gpu)])
    floor_s = np.array(
        [floors_s[str(gpu), str(kind)] for gpu, kind in zip(samples.gpus, samples.kinds, strict=True)]
    )
    spread, measured_s = np.exp(Z90 * sigma), samples.time_s
    low_s, high_s = observed_s(p50_s / spread, floor_s), observed_s(p50_s * spread, floor_s)
    return _Judged(
        samples=samples,
        floor_s=floor_s,
        signed=observed_s(p50_s, floor_s) / measured_s - 1,
        inside=(low_s <= measured_s) & (measured_s <= high_s),
        tells=measured_s > _ABOVE_FLOOR * floor_s,
    )


def _by_split(judged: _Judged, chosen: NDArray[np.bool_], gpu: str) -> list[KernelErrors]:
    rows = []
    for split in np.unique(judged.samples.splits[chosen]).tolist():
        in_split = chosen & (judged.samples.splits == split)
        present = np.unique(judged.samples.kinds[in_split]).tolist()
        joined = {name: kinds for name, kinds in GROUPS.items() if len({*kinds} & {*present}) > 1}
        for name, members in {**{kind: (kind,) for kind in present}, **joined, ALL: present}.items():
            own = in_split & np.isin(judged.samples.kinds, members)
            rows.append(_errors(judged, own, (name, gpu, split)))
    return rows


def _errors(judged: _Judged, chosen: NDArray[np.bool_], key: tuple[str, str, str]) -> KernelErrors:
    signed, tells = judged.signed[chosen], judged.tells[chosen]
    floors_s = np.unique(judged.floor_s[chosen])
    kind, gpu, split = key
    return KernelErrors(
        kind=kind,
        gpu=gpu,
        split=split,
        rows=len(signed),
        floor_s=float(floors_s[0]) if kind not in (*GROUPS, ALL) and gpu != ALL else None,
        median=float(np.median(np.abs(signed))),
        mean=float(np.abs(signed).mean()),
        p90=float(np.quantile(np.abs(signed), 0.9)),
        bias=float(np.median(signed)),
        coverage=float(judged.inside[chosen][tells].mean()) if tells.any() else 1.0,
    )
