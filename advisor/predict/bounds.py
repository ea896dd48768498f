"""Which of a GPU's two roofs its operators lean on: compute or memory bandwidth.

Of an operator of F FLOPs and B bytes the roof is compute where ``F / B`` lies above the ridge point, the
FLOPs a GPU does while it moves a byte (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Bound, FittedConstants, GpuSpec, Precision, Trace
from advisor.operators.family import Family
from advisor.operators.rates import rate_for
from advisor.predict.distinct import Same, asked_rates
from advisor.predict.methods import OpTimes


def bounds_of(
    trace: Trace, gpu: GpuSpec, constants: FittedConstants, times: OpTimes
) -> Mapping[Bound, float]:
    """Seconds of the trace's operators on ``gpu`` by the roof that each leans on.

    Args:
        trace: its operators, in the order of ``times``.
        gpu: the destination.
        constants: what it reaches of its roofs.
        times: of the operators there.
    """
    compute_s = float(np.sum(times.time_s[leans_on_compute(trace, gpu, constants)]))
    return {Bound.COMPUTE: compute_s, Bound.MEMORY: float(np.sum(times.time_s)) - compute_s}


def leans_on_compute(trace: Trace, gpu: GpuSpec, constants: FittedConstants) -> NDArray[np.bool_]:
    """Whether each operator's roof is compute, [N]."""
    rates, index, intensity = _intensities(Same(trace.ops), trace.precision)
    ridges = np.array([_ridge(name, family, gpu, constants) for name, family in rates])
    is_above: NDArray[np.bool_] = intensity > ridges[index]
    return is_above


def _ridge(rate: str, family: Family, gpu: GpuSpec, constants: FittedConstants) -> float:
    """FLOPs for a byte, of what the GPU reaches of both roofs."""
    reached_bytes_per_s = constants.fractions[family.bandwidth] * gpu.memory_bytes_per_s
    return rate_for(rate, family, gpu, constants).flops_per_s / reached_bytes_per_s


@lru_cache(maxsize=4)
def _intensities(
    same: Same, precision: Precision
) -> tuple[tuple[tuple[str, Family], ...], NDArray[np.int64], NDArray[np.float64]]:
    """The distinct (rate, family) of the operators, which of them each has, and its FLOPs for a byte."""
    asked = asked_rates(same.ops, precision)
    distinct = {key: i for i, key in enumerate(dict.fromkeys(asked))}
    intensity = np.array([op.flops / max(1, op.bytes) for op in same.ops])
    return tuple(distinct), np.array([distinct[key] for key in asked]), intensity
