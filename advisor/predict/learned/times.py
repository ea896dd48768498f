"""Learned times of a trace's operators on a GPU; grouped once, however many GPUs are asked about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.family import Rate
from advisor.operators.rates import rate_for
from advisor.operators.registry import rows
from advisor.predict.distinct import Same, asked_rates
from advisor.predict.knowledge import Knowledge
from advisor.predict.learned.model import Calls, CallTimes, grouped, kernel_times
from advisor.predict.roofline import KERNEL_FLOOR_S

Floats = NDArray[np.float64]
# Clocks, heat and libraries differ from day to day; a GPU without measurements from those like it. Both such
# that p10..p90 holds 80 % of the kernels and iterations that were held out (docs/accuracy).
SIGMA_DAY = 0.1
SIGMA_UNSEEN = 0.2
# What a minute of calibration leaves of that, on another day.
CALIBRATED_SHARE = 0.5
# How much wider kernels that were held out scatter than those of the training.
_HELD_OUT = 1.3
# The part of a call's sigma that is left in an iteration; the rest cancels between its kernels.
SHARED = 0.5
# Whose boards were measured; libraries of others have kernels of their own.
_VENDOR = "NVIDIA"


def learned_times(
    ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision, knowledge: Knowledge
) -> CallTimes:
    """One call of each operator on ``gpu``, as far as the networks know it.

    Families whose FLOPs count are known in FP32 on CUDA cores, which is what was measured; others at any
    precision, since only their bytes count.
    """
    time_s, sigma = np.full(len(ops), np.nan), np.full(len(ops), np.nan)
    if gpu.vendor != _VENDOR:
        return CallTimes(time_s=time_s, sigma=sigma)
    for calls in _grouped(Same(ops)):
        network = knowledge.networks.get(calls.network)
        if network is None:
            continue
        peaks = _peaks(calls, ops, gpu, constants, precision)
        known = ~np.isnan(peaks)
        if not known.any():
            continue
        times = kernel_times(network, calls, gpu, peaks)
        index = calls.index[known]
        time_s[index] = KERNEL_FLOOR_S + times.time_s[known] / constants.learned_share.get(calls.network, 1.0)
        sigma[index] = np.hypot(_HELD_OUT * times.sigma[known], _sigma_of_board(calls.network, constants))
    return CallTimes(time_s=time_s, sigma=sigma)


def _sigma_of_board(network: str, constants: FittedConstants) -> float:
    """What a GPU differs from itself on another day, and from boards like it where it was not measured."""
    if constants.is_measured:
        return SIGMA_DAY
    left = CALIBRATED_SHARE if network in constants.learned_share else 1.0
    return math.hypot(SIGMA_DAY, left * SIGMA_UNSEEN)


def _peaks(
    calls: Calls, ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> Floats:
    """The data sheet's FLOP rate of each call; NaN where the networks have not seen that rate."""
    family, learned = rows().network[calls.network]
    if not learned.counts_flops:
        return np.ones(len(calls.index))
    wanted = [rate for rate, _ in asked_rates(ops, precision)]
    rates = {name: rate_for(name, family, gpu, constants) for name in set(wanted)}
    peaks = {name: rate.peak_flops_per_s if _is_learned(rate) else np.nan for name, rate in rates.items()}
    return np.array([peaks[wanted[i]] for i in calls.index])


def _is_learned(rate: Rate) -> bool:
    return rate.constant.endswith(".fp32") and not rate.is_substitute


@lru_cache(maxsize=4)
def _grouped(same: Same) -> tuple[Calls, ...]:
    return grouped(same.ops)
