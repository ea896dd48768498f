"""Fits what a GPU reaches of its data sheet to measured kernels; medians, so a few wild rows do no harm.

From many kernels, by the slope of time over work (``fit_bandwidth_fraction``, ``fit_compute_fraction``), or
from a few, by how much slower they are than predicted (``fit_offset``), whatever the predictor.

The model is the roofline's: ``time = overhead + max(FLOPs / (f * peak), bytes / (b * bandwidth))``.
``b`` comes from streaming kernels, ``f`` from products and convolutions that are bound by compute.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import CalibrationError
from advisor.core.values import Op, Precision
from advisor.formats.recording_files import Measurement

_STREAMING_MIN_BYTES = 64e6
_COMPUTE_MIN_S = 3e-4
_FEWEST = 20
# What no GPU stays below; Winograd lets convolutions pass their peak, by less than twice.
_LEAST_FRACTION, _MOST_FRACTION = 0.01, 2.0
PredictS = Callable[[Op, Precision], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernels:
    """Measured calls of one kind on one GPU; arrays of equal length, one call an element.

    Attributes:
        time_s: as measured, launch and event overhead included.
        flops: floating-point operations of the call.
        num_bytes: bytes read and written in device memory.
    """

    time_s: NDArray[np.float64]
    flops: NDArray[np.float64]
    num_bytes: NDArray[np.float64]


def fit_bandwidth_fraction(kernels: MeasuredKernels, memory_bytes_per_s: float) -> float:
    """Achieved / specified bandwidth: median slope of time over bytes, so that overhead drops out.

    Raises:
        ValueError: fewer than 20 kernels move 64 MB or more.
    """
    large = kernels.num_bytes >= _STREAMING_MIN_BYTES
    if int(large.sum()) < _FEWEST:
        raise ValueError(f"{int(large.sum())} kernels of 64 MB or more, {_FEWEST} needed")
    slope = median_slope(kernels.num_bytes[large], kernels.time_s[large])
    return float(1 / slope / memory_bytes_per_s)


def median_slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Theil-Sen slope over pairs a half apart in the order of x (all pairs would be quadratic).

    >>> median_slope(np.arange(10.0), 3 * np.arange(10.0) + 7)
    3.0
    """
    order = np.argsort(x, kind="stable")
    x_sorted, y_sorted = x[order], y[order]
    half = len(x) // 2
    dx = x_sorted[half:] - x_sorted[: len(x) - half]
    dy = y_sorted[half:] - y_sorted[: len(x) - half]
    apart = dx > 0
    return float(np.median(dy[apart] / dx[apart]))


def fit_compute_fraction(
    kernels: MeasuredKernels, peak_flops_per_s: float, memory_bytes_per_s: float
) -> float:
    """Achieved / peak FLOP rate of kernels that compute bounds for 0.3 ms or more; may pass 1 (Winograd).

    Raises:
        ValueError: fewer than 20 such kernels.
    """
    compute_s = kernels.flops / peak_flops_per_s
    bound = (compute_s >= _COMPUTE_MIN_S) & (compute_s > kernels.num_bytes / memory_bytes_per_s)
    if int(bound.sum()) < _FEWEST:
        raise ValueError(f"{int(bound.sum())} compute-bound kernels, {_FEWEST} needed")
    overhead_s = kernels.time_s.min()
    return float(np.median(compute_s[bound] / np.maximum(kernels.time_s[bound] - overhead_s, 1e-9)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstant:
    """One constant before and after.

    Attributes:
        name: such as ``gemm_fraction.bf16``.
        spread: median absolute deviation of the kernels' logarithmic offsets; 0.1 is about 10 %.
    """

    name: str
    before: float
    after: float
    num_kernels: int
    spread: float


def fit_offset(
    name: str,
    before: float,
    kernels: Sequence[Measurement],
    predict_s: PredictS,
    launch_s: float,
    *,
    most: float = _MOST_FRACTION,
    quantile: float = 0.5,
    trust: float = 1.0,
) -> FittedConstant:
    """The constant with which the median kernel takes as long as predicted.

    With ``offset = median(log(measured - launch) - log(predicted - launch))``, the time of a kernel beyond
    its launch being inversely proportional to the constant: ``after = before * exp(-offset)``.

    Args:
        name: of the constant.
        before: its value behind ``predict_s``.
        kernels: measured ones that this constant binds.
        predict_s: seconds of one call as predicted with ``before``.
        launch_s: seconds of a launch, which no constant changes.
        most: the largest value that makes sense.
        quantile: of the offsets, instead of the median.
        trust: the part of the offset that counts.

    Raises:
        CalibrationError: no kernel takes longer than a launch, or the result is no fraction.
    """
    offsets = [
        math.log(kernel.time_s - launch_s) - math.log(predicted_s - launch_s)
        for kernel in kernels
        if (predicted_s := predict_s(kernel.op, kernel.precision)) > launch_s and kernel.time_s > launch_s
    ]
    if not offsets:
        raise CalibrationError(f"no kernel for {name} takes longer than its launch: nothing can be fitted.")
    offset = float(np.quantile(offsets, quantile))
    after = before * math.exp(-trust * offset)
    if not _LEAST_FRACTION <= after <= most:
        raise CalibrationError(
            f"{name} would become {after:.3g}, which is no share of a rate"
            f" ({_LEAST_FRACTION:g} to {most:g}): is this the GPU that its name says, and was it"
            " free?"
        )
    middle = statistics.median(offsets)
    spread = statistics.median(abs(value - middle) for value in offsets)
    return FittedConstant(name=name, before=before, after=after, num_kernels=len(offsets), spread=spread)
