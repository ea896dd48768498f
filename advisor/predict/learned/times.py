"""Learned times of a trace's operators on a GPU; grouped once, however many GPUs are asked about."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.family import Family, FittedTime, Learned
from advisor.operators.rates import rate_for
from advisor.operators.registry import family_of, rows
from advisor.predict.distinct import Same, asked_rates
from advisor.predict.knowledge import Knowledge
from advisor.predict.learned.model import Calls, CallTimes, grouped, kernel_times
from advisor.predict.roofline import KERNEL_FLOOR_S

Floats = NDArray[np.float64]
Formula = Callable[[Op, GpuSpec], FittedTime | None]
# Clocks, heat and libraries differ from day to day; a GPU without measurements from those like it
# (``Learned.unseen_sigma``). Both such that p10..p90 holds 80 % of the kernels and iterations that were held
# out (docs/accuracy).
SIGMA_DAY = 0.1
# What a minute of calibration leaves of that, on another day.
CALIBRATED_SHARE = 0.5
# How much wider kernels that were held out scatter than those of the training.
_HELD_OUT = 1.3
# The part of a call's sigma that is left in an iteration; the rest cancels between its kernels.
SHARED = 0.5
# A calibration finds one share of calls that go by their FLOPs, and another one, whose name ends so, of those
# that go by their bytes. Which of them a call has is told by the part of its roofline's work that is FLOPs.
OF_BYTES = "_bytes"
_BY_BYTES, _BY_FLOPS = 0.5, 0.9


def learned_times(
    ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision, knowledge: Knowledge
) -> CallTimes:
    """One call of each operator on ``gpu``, as far as a network or a formula of its family knows it."""
    time_s, sigma = np.full(len(ops), np.nan), np.full(len(ops), np.nan)
    for calls in _grouped(Same(ops)):
        network, learned = knowledge.networks.get(calls.network), calls.learned
        if network is None or learned.vendor != gpu.vendor:
            continue
        peaks = _peaks(calls, ops, gpu, constants, precision)
        known = ~np.isnan(peaks) & np.isnan(time_s[calls.index])
        if not known.any():
            continue
        times = kernel_times(network, calls, gpu, peaks)
        index = calls.index[known]
        reached = _reached(calls, peaks, gpu, constants)[known]
        time_s[index] = KERNEL_FLOOR_S + times.time_s[known] / reached
        coupled = _sigma_of_rates(calls, ops, precision)[known]
        of_board = np.hypot(_sigma_of_board(learned, constants), coupled)
        sigma[index] = np.hypot(_HELD_OUT * times.sigma[known], of_board)
    for i, formula in _formulas(Same(ops)):
        fitted = formula(ops[i], gpu) if math.isnan(time_s[i]) else None
        if fitted is not None:
            time_s[i], sigma[i] = KERNEL_FLOOR_S + fitted.time_s, fitted.sigma
    return CallTimes(time_s=time_s, sigma=sigma)


def goes_by_bytes(
    op: Op, network: str, gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> bool:
    """Whether a call that a network knows tells what a GPU reaches in bytes rather than in FLOPs."""
    (calls,) = (calls for calls in _grouped(Same((op,))) if calls.network == network)
    return bool(_by_flops(calls, _peaks(calls, (op,), gpu, constants, precision), gpu)[0] < 0.5)


def _by_flops(calls: Calls, peaks: Floats, gpu: GpuSpec) -> Floats:
    """Of each call, 1 where FLOPs decide what it reaches, 0 where bytes do, and what lies between."""
    compute_s = calls.flops / peaks
    part = compute_s / (compute_s + calls.num_bytes / gpu.memory_bytes_per_s)
    return np.clip((part - _BY_BYTES) / (_BY_FLOPS - _BY_BYTES), 0.0, 1.0)


def _reached(calls: Calls, peaks: Floats, gpu: GpuSpec, constants: FittedConstants) -> Floats:
    """What part of the learned rate the GPU reaches in each call, as far as a calibration knows."""
    of_flops = constants.learned_share.get(calls.network, 1.0)
    of_bytes = constants.learned_share.get(calls.network + OF_BYTES, of_flops)
    by_flops = _by_flops(calls, peaks, gpu)
    return np.asarray(of_flops**by_flops * of_bytes ** (1 - by_flops))


def is_learned_from(learned: Learned, constants: FittedConstants) -> bool:
    """Whether the network saw kernels of this GPU; one whose kernels told no constant was seen by all."""
    fitted = constants.fitted
    return fitted is not None and (not fitted or bool(learned.measured_by & fitted))


def _sigma_of_board(learned: Learned, constants: FittedConstants) -> float:
    """What a GPU differs from itself on another day, and from boards like it where it was not measured."""
    # Networks of fitted rates tell of bursts in one state of the board; what its clocks do under load and on
    # another day comes with the constant that tells of it.
    is_burst = learned.is_of_fitted and "sustained_clock" not in constants.fractions
    day = 0.0 if is_burst else SIGMA_DAY
    if is_learned_from(learned, constants):
        return day
    left = CALIBRATED_SHARE if learned.name in constants.learned_share else 1.0
    return math.hypot(day, left * learned.unseen_sigma)


def _sigma_of_rates(calls: Calls, ops: Sequence[Op], precision: Precision) -> Floats:
    """What a rate that was not measured may differ by from the one that it is coupled to."""
    rates, index = _rates_of(calls, Same(ops), precision)
    return np.array([calls.learned.coupled.get(rate, 0.0) for rate in rates])[index]


def _peaks(
    calls: Calls, ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> Floats:
    """The FLOP rate that each call's penalty is of; NaN where the network has not seen the call's rate."""
    family, learned = rows().network[calls.network]
    rates, index = _rates_of(calls, Same(ops), precision)
    return np.array([peak_flops_per_s(rate, family, learned, gpu, constants) for rate in rates])[index]


@lru_cache(maxsize=64)
def _rates_of(calls: Calls, same: Same, precision: Precision) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct rates that the calls ask for, and which of them each does."""
    asked = asked_rates(same.ops, precision)
    rates = [asked[i][0] for i in calls.index.tolist()]
    place = {rate: i for i, rate in enumerate(dict.fromkeys(rates))}
    return tuple(place), np.array([place[rate] for rate in rates])


def peak_flops_per_s(
    asked: str, family: Family, learned: Learned, gpu: GpuSpec, constants: FittedConstants
) -> float:
    """The FLOP rate that a penalty is of, for calls that ask for a rate; NaN where the network knows it not.

    A rate that stands in for another one, such as FP32 for emulated bf16, is known to no network. Where FLOPs
    do not count it is 1.
    """
    if not learned.counts_flops:
        return 1.0 if learned.rates is None or asked in learned.rates else math.nan
    own = gpu.tensor_flops_per_s.get(asked, 0.0)
    if not learned.is_of_fitted and asked in (learned.rates or ()) and own > gpu.vector_flops_per_s["fp32"]:
        # What fraction of it others assume is nothing to a network that has seen such kernels.
        return own
    if learned.is_of_fitted:
        constants = replace(constants, fractions={**constants.fractions, **constants.uncalibrated})
    rate = rate_for(asked, family, gpu, constants)
    offered = rate.constant.rpartition(".")[2]
    if rate.is_substitute or (learned.rates is not None and offered not in learned.rates):
        return math.nan
    return rate.flops_per_s if learned.is_of_fitted else rate.peak_flops_per_s


@lru_cache(maxsize=4)
def _grouped(same: Same) -> tuple[Calls, ...]:
    return grouped(same.ops)


@lru_cache(maxsize=4)
def _formulas(same: Same) -> tuple[tuple[int, Formula], ...]:
    """Where operators stand whose family has a formula, and this."""
    found = ((i, family_of(op).fitted) for i, op in enumerate(same.ops))
    return tuple((i, formula) for i, formula in found if formula is not None)
