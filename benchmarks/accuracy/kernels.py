"""Single operators against measured kernels: by kind, GPU and split.

A measured call holds the cost of launching and timing it, some 25 to 90 us, which a prediction of the kernel
does not: ``advisor.predict.training.overhead`` fits it on the training split.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.gpus import load_gpus
from advisor.predict.interval import Z90
from advisor.predict.training.overhead import Floors, observed_s
from advisor.predict.training.samples import Samples
from advisor.types import GpuSpec, Op

Floats = NDArray[np.float64]
# Seconds of one call of each operator on a GPU, and the log-normal sigma of each.
KernelTimes = Callable[[Sequence[Op], GpuSpec], tuple[Floats, Floats]]
_ABOVE_FLOOR = 1.5
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelErrors:
    """Errors of one kind on one GPU in one split, as fractions of the measured time.

    Attributes:
        kind: the recording's name of the operator, or ``all``.
        floor_s: seconds of the shortest call; None where kinds with floors of their own are joined.
        bias: median of the signed error, positive where predictions are too slow.
        coverage: the part of the measurements within p10..p90.
    """

    kind: str
    gpu: str
    split: str
    rows: int
    floor_s: float | None
    median: float
    mean: float
    p90: float
    bias: float
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Predicted:
    """All samples of one GPU with their predictions."""

    samples: Samples
    p50_s: Floats
    sigma: Floats


def kernel_errors(samples: Samples, kernel_times: KernelTimes, floors_s: Floors) -> list[KernelErrors]:
    """Every kind, GPU and split that the samples have, and all kinds of a GPU and split together."""
    found: list[KernelErrors] = []
    for gpu in np.unique(samples.gpus):
        found += _of_gpu(_predicted(samples, str(gpu), kernel_times), str(gpu), floors_s)
    return found


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


def _predicted(samples: Samples, gpu: str, kernel_times: KernelTimes) -> _Predicted:
    own = samples.where(samples.gpus == gpu)
    p50_s, sigma = kernel_times(own.ops, load_gpus()[gpu])
    return _Predicted(samples=own, p50_s=p50_s, sigma=sigma)


def _of_gpu(part: _Predicted, gpu: str, floors_s: Floors) -> list[KernelErrors]:
    added_s = np.array([floors_s[gpu, str(kind)] for kind in part.samples.kinds])
    found = []
    for split in np.unique(part.samples.splits):
        in_split = part.samples.splits == split
        for kind in np.unique(part.samples.kinds[in_split]):
            chosen = in_split & (part.samples.kinds == kind)
            found.append(_errors(part, chosen, added_s, (str(kind), gpu, str(split))))
        found.append(_errors(part, in_split, added_s, (ALL, gpu, str(split))))
    return found


def _errors(
    part: _Predicted, chosen: NDArray[np.bool_], added_s: Floats, key: tuple[str, str, str]
) -> KernelErrors:
    measured_s, p50_s, floor_s = part.samples.time_s[chosen], part.p50_s[chosen], added_s[chosen]
    spread = np.exp(Z90 * part.sigma[chosen])
    signed = observed_s(p50_s, floor_s) / measured_s - 1
    low_s, high_s = observed_s(p50_s / spread, floor_s), observed_s(p50_s * spread, floor_s)
    # A call that only the host bounds says nothing about the kernel, nor about its interval.
    tells = measured_s > _ABOVE_FLOOR * floor_s
    inside = (low_s <= measured_s) & (measured_s <= high_s)
    kind, gpu, split = key
    return KernelErrors(
        kind=kind,
        gpu=gpu,
        split=split,
        rows=len(signed),
        floor_s=float(floor_s[0]) if kind != ALL else None,
        median=float(np.median(np.abs(signed))),
        mean=float(np.abs(signed).mean()),
        p90=float(np.quantile(np.abs(signed), 0.9)),
        bias=float(np.median(signed)),
        coverage=float(inside[tells].mean()) if tells.any() else 1.0,
    )
