"""What an iteration gets done, what bounds it, and what it loses where power is limited.

Model FLOPs utilization (MFU) is what a GPU does of the model over what it could do in that time at its peak
(Chowdhery et al., "PaLM", arXiv 2204.02311, 2022, section 4.1). Of the model are the products of forward and
backward pass, each once: what is computed again to save memory does not count.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import (
    Bound,
    FittedConstants,
    GpuSpec,
    Layout,
    Method,
    Op,
    Phase,
    Precision,
    StepWork,
    Trace,
)
from advisor.operators.attention import ATTENTION
from advisor.operators.family import Family, base_name, data_sheet_flops_per_s, rate_for
from advisor.operators.registry import family_of
from advisor.predict.constants import slowed
from advisor.predict.distinct import Same, asked_rates
from advisor.predict.exchange.collectives import sharded_over, sharding_group
from advisor.predict.methods import METHODS, OpTimes
from advisor.predict.split import Rank

# Which of a GPU's two roofs its operators lean on: compute or memory bandwidth.
#
# Of an operator of F FLOPs and B bytes the roof is compute where ``F / B`` lies above the ridge point, the
# FLOPs a GPU does while it moves a byte (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009).


def bounds_of(
    trace: Trace, gpu: GpuSpec, constants: FittedConstants, times: OpTimes
) -> Mapping[Bound, float]:
    """Seconds of the trace's operators on ``gpu`` by the roof that each leans on.

    Args:
        trace: its operators, in the order of ``times``.
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
    return slowed(gpu.tdp_w / limit_w - 1)


def sigma_of_limit(gpu: GpuSpec, limit_w: float | None, by_bound: Mapping[Bound, float]) -> float:
    """Log-normal, of a GPU's whole time: what memory binds is as sure as without a limit.

    Args:
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
        limit_w: that counts; None without one.
    """
    if limit_w is None:
        return times
    slow = leans_on_compute(trace, gpu, constants) & (times.methods != METHODS.index(Method.MEASURED))
    return replace(times, time_s=np.where(slow, slowdown(gpu, limit_w), 1.0) * times.time_s)


# Of an attention's backward pass: one of its five products makes the scores again.
_SHARE_OF_BACKWARD_ATTENTION = 4 / 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Products:
    flops: float
    rate: str


def step_work(rank: Rank, gpu: GpuSpec, layout: Layout, share: float) -> StepWork:
    """What an iteration gets done.

    Args:
        gpu: of which kind all are.
        share: what each copy of the model takes of the profiled batch.
    """
    trace, copies = rank.trace, max(layout.num_gpus // rank.split.gpus_per_copy, 1)
    products = _products(Same(trace.ops), trace.precision)
    batch_size = None if _share_samples(trace) else trace.batch_size
    return StepWork(
        num_samples=None if batch_size is None else batch_size * share * copies,
        model_flops=None if products is None else products.flops * share * trace.mean_step.work,
        peak_flops_per_s=None if products is None else data_sheet_flops_per_s(products.rate, gpu),
    )


def _share_samples(trace: Trace) -> bool:
    """Whether ranks may take the same samples, as those that divide layers do."""
    return sharded_over(trace) not in (None, 1) and sharding_group(trace) is None


@lru_cache(maxsize=8)
def _products(same: Same, precision: Precision) -> _Products | None:
    """FLOPs of the products of the model and the rate that most of them ask for; None where none is known."""
    forward = Counter[tuple[object, ...]]()
    for op in same.ops:
        if op.phase is Phase.FORWARD:
            forward[_call(op)] += op.count
    by_rate = Counter[str]()
    for op, (rate, family) in zip(same.ops, asked_rates(same.ops, precision), strict=True):
        if family.compute.tensor_cores and op.phase is not Phase.OPTIMIZER:
            by_rate[rate] += round(_model_flops(op, forward))
    if not by_rate.total():
        return None
    return _Products(flops=float(by_rate.total()), rate=by_rate.most_common(1)[0][0])


def _model_flops(op: Op, forward: Counter[tuple[object, ...]]) -> float:
    if op.phase is Phase.FORWARD:
        return float(op.flops * op.count)
    # A call that the forward pass made as well, strides included, computes the same again.
    again = min(op.count, forward[_call(op)]) if _has_strides(op) else 0
    forward[_call(op)] -= again
    each = op.flops * _SHARE_OF_BACKWARD_ATTENTION if _is_backward_attention(op) else op.flops
    return float(each * (op.count - again))


def _call(op: Op) -> tuple[object, ...]:
    return op.name, op.inputs


def _has_strides(op: Op) -> bool:
    return all(tensor.stride is not None for tensor in op.inputs)


def _is_backward_attention(op: Op) -> bool:
    return family_of(op).word == ATTENTION.word and base_name(op.name).endswith("_backward")
