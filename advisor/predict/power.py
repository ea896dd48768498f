"""What a GPU loses where its power is limited.

A board of 700 W that may draw 500 lowers its clocks until it does. What its cores bind then takes
``1 + 0.49 (700 / 500 - 1)^1.75 = 1.10`` times as long; what memory binds takes as long as before. The law is
fitted to epochs of jobs that draw all a V100, an A40 or an RTX 6000 may, down to 0.35 of it (Zeus, NSDI'23:
``python -m research.power_limits``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from advisor.core.values import Bound, FittedConstants, GpuSpec, Method, Trace
from advisor.predict.bounds import leans_on_compute
from advisor.predict.methods import METHODS, OpTimes

FACTOR, POWER = 0.49, 1.75
# Of the log of the slowdown, between boards and jobs.
SIGMA_SHARE = 0.27


def lowers(limit_w: float | None, gpu: GpuSpec) -> bool:
    """Whether a limit is below the data sheet's; one above it makes nothing faster."""
    return limit_w is not None and limit_w < gpu.tdp_w


def counted(limit_w: float | None, gpu: GpuSpec, constants: FittedConstants) -> float | None:
    """A limit that slows the GPU down, or None: what kernels of a board told, they told under its own."""
    return limit_w if lowers(limit_w, gpu) and not constants.is_calibrated else None


def slowdown(gpu: GpuSpec, limit_w: float) -> float:
    """By which what cores bind takes longer."""
    return 1 + FACTOR * math.pow(gpu.tdp_w / limit_w - 1, POWER)


def sigma_of_limit(gpu: GpuSpec, limit_w: float | None, by_bound: Mapping[Bound, float]) -> float:
    """Log-normal, of a GPU's whole time: what memory binds is as sure as without a limit.

    Args:
        gpu: the destination.
        limit_w: that counts; None without one.
        by_bound: seconds of its operators by the roof that each leans on.
    """
    if limit_w is None or not by_bound.get(Bound.COMPUTE):
        return 0.0
    share = by_bound[Bound.COMPUTE] / sum(by_bound.values())
    return share * SIGMA_SHARE * math.log(slowdown(gpu, limit_w))


def at_limit(
    times: OpTimes, trace: Trace, gpu: GpuSpec, constants: FittedConstants, limit_w: float | None
) -> OpTimes:
    """The operators of a trace on a board that may draw so much; what was measured on it stays.

    Args:
        times: on a board without a limit of its own.
        trace: of those operators, in their order.
        gpu: the destination.
        constants: what it reaches.
        limit_w: that counts; None without one.
    """
    if limit_w is None:
        return times
    slow = leans_on_compute(trace, gpu, constants) & (times.methods != METHODS.index(Method.MEASURED))
    return replace(times, time_s=np.where(slow, slowdown(gpu, limit_w), 1.0) * times.time_s)
