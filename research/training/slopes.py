"""Fits what a GPU reaches of its data sheet by the slope of time over work of many measured kernels.

Medians, so a few wild rows do no harm. The model is the roofline's:
``time = overhead + max(FLOPs / (f * peak), bytes / (b * bandwidth))``. ``b`` comes from
streaming kernels, ``f`` from products and convolutions that are bound by compute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STREAMING_MIN_BYTES = 64e6
_COMPUTE_MIN_S = 3e-4
_FEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernels:
    """Measured calls of one kind on one GPU; arrays of equal length, one call an element."""

    time_s: NDArray[np.float64]
    """As measured, launch and event overhead included."""
    flops: NDArray[np.float64]
    """Floating-point operations of the call."""
    num_bytes: NDArray[np.float64]
    """Bytes read and written in device memory."""


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
