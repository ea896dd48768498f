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
from advisor.predict.learned.gaussian_process import Told, told
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
# The part of a call's sigma that is left in an iteration; the rest cancels between its kernels.
SHARED = 0.5


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
        times = _of_this_board(kernel_times(network, calls, gpu, peaks), calls, constants)
        index = calls.index[known]
        time_s[index] = times.time_s[known]
        sigma[index] = np.hypot(times.sigma[known], _sigma_of_rates(calls, ops, precision)[known])
    for i, formula in _formulas(Same(ops)):
        fitted = formula(ops[i], gpu) if math.isnan(time_s[i]) else None
        if fitted is not None:
            time_s[i], sigma[i] = KERNEL_FLOOR_S + fitted.time_s, fitted.sigma
    return CallTimes(time_s=time_s, sigma=sigma)


def _of_this_board(times: CallTimes, calls: Calls, constants: FittedConstants) -> CallTimes:
    """With the launch, by what a calibration tells of the board, and as sure as is known of it."""
    board = _told_by_kernels(calls, constants)
    if board is not None:
        of_board = np.hypot(np.sqrt(board.variance), _of_day(calls.learned, constants))
        time_s = (KERNEL_FLOOR_S + times.time_s) * np.exp(board.mean)
    else:
        reached = constants.learned_share.get(calls.network, 1.0)
        of_board = np.full(len(times.sigma), _sigma_of_board(calls.learned, constants))
        time_s = KERNEL_FLOOR_S + times.time_s / reached
    of_call = np.hypot(calls.learned.held_out_share * times.sigma, calls.learned.least_sigma)
    return CallTimes(time_s=time_s, sigma=np.hypot(of_call, of_board))


def _told_by_kernels(calls: Calls, constants: FittedConstants) -> Told | None:
    """How much longer each call takes by the kernels of a calibration, in logarithms; None where none count.

    A GPU that the network learned from differs from itself by a day, which all calls share.
    """
    likeness, kernels = calls.learned.likeness, constants.learned_kernels.get(calls.network, ())
    if likeness is None or not kernels or is_learned_from(calls.learned, constants):
        return None
    logs = np.log(np.array(kernels, float))
    sizes = calls.features[:, : len(likeness.lengths)].astype(float)
    return told(likeness, logs[:, :-1], -logs[:, -1], sizes)


def is_learned_from(learned: Learned, constants: FittedConstants) -> bool:
    """Whether the network saw kernels of this GPU; one whose kernels told no constant was seen by all."""
    fitted = constants.fitted
    return fitted is not None and (not fitted or bool(learned.measured_by & fitted))


def _sigma_of_board(learned: Learned, constants: FittedConstants) -> float:
    """What a GPU differs from itself on another day, and from boards like it where it was not measured."""
    day = _of_day(learned, constants)
    if is_learned_from(learned, constants):
        return day
    left = CALIBRATED_SHARE if learned.name in constants.learned_share else 1.0
    unseen = math.sqrt(learned.likeness.variance) if learned.likeness is not None else learned.unseen_sigma
    return math.hypot(day, left * unseen)


def _of_day(learned: Learned, constants: FittedConstants) -> float:
    # Networks of fitted rates tell of bursts in one state of the board; what its clocks do under load and on
    # another day comes with the constant that tells of it.
    is_burst = learned.is_of_fitted and "sustained_clock" not in constants.fractions
    return 0.0 if is_burst else SIGMA_DAY


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
