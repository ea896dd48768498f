"""Learned times of a trace's operators on a GPU, by small networks that numpy runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.family import Family, Learned, Likeness, Tf32Flag, TimeOnGpu, base_name, rate_for
from advisor.operators.registry import family_of, rows
from advisor.predict.distinct import asked_rates, in_fp32, kept
from advisor.predict.knowledge import Knowledge, LearnedNetwork
from advisor.predict.roofline import KERNEL_FLOOR_S


@dataclass(frozen=True, slots=True)
class Shape:
    """Which network an operator belongs to, and what that network is given of it."""

    network: str
    values: tuple[float, ...]


def shape_of(op: Op, rate: str = "fp32") -> Shape | None:
    """The numbers of one call, for the first network that knows it at this rate.

    None for an operator that no network knows, for empty tensors, and where a profiler left out shapes.
    """
    for learned in rows().networks_of_name.get(base_name(op.name), ()):
        if learned.rates is None or rate in learned.rates:
            values = numbers_of(op, learned)
            return None if values is None else Shape(learned.name, values)
    return None


def numbers_of(op: Op, learned: Learned) -> tuple[float, ...] | None:
    """What a network that knows its name is given of a call; None where it cannot tell."""
    if not op.bytes or not op.inputs or not all(op.inputs[0].shape):
        return None
    try:
        return learned.features(op)
    except (IndexError, KeyError, ValueError, TypeError):  # not recorded, or no sizes
        return None


# Operator times by learned efficiency: the data sheet's rates, and what a network says is lost of them.
#
#     t = launch + F / P * exp(c) + B / D * exp(m)
#
# for F FLOPs and B bytes on a GPU of peak P and bandwidth D. The penalties c and m come from the call's
# shape (``shapes``) and the kind of board: its power limit and its compute capability. Rates, SMs and
# clocks are no inputs of the network, so a GPU with more of them is never slower. More FLOPs or bytes at
# the same shape are never faster; of two shapes the larger may be, by its alignment or, for small kernels,
# by the network's error.

Floats = NDArray[np.float64]
# One member's opinion of a kernel stays within a factor of 50 of the roofline, whatever its weights.
_MOST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkCalls:
    """The calls that one network knows: what does not depend on the GPU."""

    network: str
    """Its name."""
    learned: Learned
    """How it sees them."""
    index: NDArray[np.int64]
    """Where they stand among the operators asked for, [N]."""
    features: NDArray[np.float32]
    """[N, F] without the board's."""
    flops: Floats
    """[N]; zero where time goes by bytes alone."""
    num_bytes: Floats
    """[N]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """Seconds of one call of each operator, [N], and its log-normal sigma, [N]; NaN where unknown.

    ``own_sigma`` is the part of it that no other call shares.
    """

    time_s: Floats
    sigma: Floats
    own_sigma: Floats | float = 0.0


@kept(4)
def grouped(ops: Sequence[Op]) -> tuple[NetworkCalls, ...]:
    """The calls that a network knows by name and shape, by network; at which rates is the GPU's to say."""
    networks = rows().networks_of_name
    members: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
    for i, op in enumerate(ops):
        for learned in networks.get(base_name(op.name), ()):
            values = numbers_of(op, learned)
            if values is not None:
                members.setdefault(learned.name, []).append((i, values))
    return tuple(
        NetworkCalls(
            network=name,
            learned=learned,
            index=np.array([i for i, _ in members[name]]),
            features=np.array([values for _, values in members[name]], np.float32),
            flops=np.array([float(ops[i].flops) if learned.counts_flops else 0.0 for i, _ in members[name]]),
            num_bytes=np.array([float(ops[i].bytes) for i, _ in members[name]]),
        )
        for name, (_, learned) in rows().network.items()
        if name in members
    )


def kernel_times(
    network: LearnedNetwork, calls: NetworkCalls, gpu: GpuSpec, peak_flops_per_s: Floats | float
) -> CallTimes:
    """Seconds of N calls on ``gpu`` without launches, at the data sheet's rate of each, [N], or of all."""
    board = calls.learned.board
    low, high = network.low[-board.num_features :], network.high[-board.num_features :]
    boards = np.clip(board.features(calls.features, gpu), low, high).astype(np.float32)
    compute, memory, residual = _penalties(network, calls, boards.tobytes())
    members_s = calls.flops / peak_flops_per_s * compute + calls.num_bytes / gpu.memory_bytes_per_s * memory
    logs = np.log(members_s)
    return CallTimes(time_s=np.exp(logs.mean(axis=0)), sigma=np.sqrt(residual**2 + logs.var(axis=0)))


@lru_cache(maxsize=128)
def _penalties(network: LearnedNetwork, calls: NetworkCalls, board: bytes) -> tuple[Floats, Floats, Floats]:
    """exp(c) and exp(m) of each member, [E, N], and the scale of what is left, [N].

    Kept: most GPUs are at the edge of what was measured, and so the same board to the networks.
    """
    boards = np.frombuffer(board, np.float32).reshape(len(calls.index), -1)
    outputs = network.outputs(np.concatenate([calls.features, boards], axis=1)).astype(float)
    compute, memory = (np.exp(np.clip(outputs[..., i], -_MOST, _MOST)) for i in (0, 1))
    return compute, memory, np.exp(np.clip(outputs[..., 2], -6.0, 1.0)).mean(axis=0)


# What kernels that were measured on a GPU tell of others: the nearer in size, the more.
#
# Gaussian process regression (Rasmussen and Williams 2006, algorithm 2.1) with a constant and a Matern 3/2
# covariance over the logarithms of the sizes.


class Told(NamedTuple):
    """Of N calls what is expected, [N], and the variance that is left, [N], without a call's own."""

    mean: Floats
    variance: Floats


def told(likeness: Likeness, measured: Floats, values: Floats, asked: Floats) -> Told:
    """What K measured values tell of N others, before any of which zero was expected.

    Args:
        likeness: how calls are alike by their D sizes.
        measured: the logarithms of the sizes that were measured, [K, D].
        values: what was found there, [K].
        asked: the logarithms of the sizes in question, [N, D].
    """
    own = likeness.of_call * np.eye(len(measured))
    factor = np.linalg.cholesky(covariance(likeness, measured, measured) + own)
    across = np.linalg.solve(factor, covariance(likeness, measured, asked))
    mean = across.T @ np.linalg.solve(factor, values)
    return Told(mean, np.maximum(likeness.variance - (across**2).sum(axis=0), 0.0))


def covariance(likeness: Likeness, left: Floats, right: Floats) -> Floats:
    """Of K and N calls, [K, N], by the logarithms of their sizes, [K, D] and [N, D]."""
    lengths = np.array(likeness.lengths)
    apart = (left[:, None, :] - right[None, :, :]) / lengths
    distance = math.sqrt(3) * np.sqrt((apart**2).sum(axis=-1))
    return np.asarray(likeness.of_all + likeness.of_size * (1 + distance) * np.exp(-distance))


# Clocks, heat and libraries differ from day to day; a GPU without measurements from those like it
# (``Learned.unseen_sigma``). Both such that p10..p90 holds 80 % of the kernels and iterations that were held
# out (docs/accuracy).
SIGMA_DAY = 0.1
# What a minute of calibration leaves of that, on another day.
CALIBRATED_SHARE = 0.5


def learned_times(
    ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision, knowledge: Knowledge
) -> CallTimes:
    """One call of each operator on ``gpu``, as far as a network or a formula of its family knows it."""
    times = _times_at(ops, gpu, constants, precision, knowledge)
    exactly = in_fp32(ops, precision, Tf32Flag.MATMUL, gpu)
    if exactly is None:
        return times
    exact = _times_at(ops, gpu, constants, exactly, knowledge)
    return replace(times, time_s=np.minimum(times.time_s, exact.time_s))


def _times_at(
    ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision, knowledge: Knowledge
) -> CallTimes:
    time_s, sigma, own_sigma = np.full(len(ops), np.nan), np.full(len(ops), np.nan), np.zeros(len(ops))
    for calls in grouped(ops):
        network, learned = knowledge.networks.get(calls.network), calls.learned
        if network is None or learned.vendor != gpu.vendor:
            continue
        rates, which = _rates_of(ops, calls, precision)
        family = rows().network[calls.network][0]
        of_rates = [peak_flops_per_s(rate, family, learned, gpu, constants) for rate in rates]
        peaks = np.array(of_rates)[which]
        known = ~np.isnan(peaks) & np.isnan(time_s[calls.index])
        if not known.any():
            continue
        times = _of_this_board(kernel_times(network, calls, gpu, peaks), calls, constants)
        # What a rate that was not measured may differ by from the one that it is coupled to.
        coupled = np.array([learned.coupled.get(rate, 0.0) for rate in rates])[which]
        index = calls.index[known]
        time_s[index] = times.time_s[known]
        sigma[index] = np.hypot(times.sigma[known], coupled[known])
        own_sigma[index] = np.broadcast_to(times.own_sigma, known.shape)[known]
    for i, formula in _formulas(ops):
        fitted = formula(gpu)
        # A network may promise what no board does: the slower counts.
        if fitted is not None and not time_s[i] > KERNEL_FLOOR_S + fitted.time_s:
            time_s[i], sigma[i], own_sigma[i] = KERNEL_FLOOR_S + fitted.time_s, fitted.sigma, 0.0
    return CallTimes(time_s=time_s, sigma=sigma, own_sigma=own_sigma)


def _of_this_board(times: CallTimes, calls: NetworkCalls, constants: FittedConstants) -> CallTimes:
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
    return CallTimes(time_s=time_s, sigma=np.hypot(of_call, of_board), own_sigma=of_call)


def _told_by_kernels(calls: NetworkCalls, constants: FittedConstants) -> Told | None:
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
    """Whether the network saw kernels of this GPU; one whose kernels fitted no constant was seen by all."""
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


@kept(64)
def _rates_of(
    ops: Sequence[Op], calls: NetworkCalls, precision: Precision
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct rates that the calls ask for, and which of them each does."""
    asked = asked_rates(ops, precision)
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


@kept(4)
def _formulas(ops: Sequence[Op]) -> tuple[tuple[int, TimeOnGpu], ...]:
    families = ((i, op, family_of(op).fitted) for i, op in enumerate(ops))
    found = ((i, fitted(op)) for i, op, fitted in families if fitted is not None)
    return tuple((i, formula) for i, formula in found if formula is not None)
