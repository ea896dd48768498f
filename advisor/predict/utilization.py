"""What an iteration gets done, what bounds it, and what it loses where power is limited.

Model FLOPs utilization (MFU) is what a GPU does of the model over what it could do in that time at its peak
(Chowdhery et al., "PaLM", arXiv 2204.02311, 2022, section 4.1). Of the model are the products of forward and
backward pass, each once: what is computed again to save memory does not count.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.core import values
from advisor.operators.attention import ATTENTION
from advisor.operators.family import Family, base_name, data_sheet_flops_per_s, rate_for
from advisor.predict.constants import slowed
from advisor.predict.distinct import asked_rates, kept
from advisor.predict.exchange.collectives import sharded_over, sharding_group
from advisor.predict.methods import METHODS, OpTimes
from advisor.predict.split import Rank

# Of an operator of F FLOPs and B bytes the roof is compute where ``F / B`` lies above the ridge point, the
# FLOPs a GPU does while it moves a byte (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009).


def bounds_of(
    trace: values.Trace, gpu: values.GpuSpec, constants: values.FittedConstants, times: OpTimes
) -> Mapping[values.Bound, float]:
    """Seconds of the trace's operators by the roof that each leans on; their order is that of ``times``."""
    compute_s = float(np.sum(times.time_s[leans_on_compute(trace, gpu, constants)]))
    return {values.Bound.COMPUTE: compute_s, values.Bound.MEMORY: float(np.sum(times.time_s)) - compute_s}


def leans_on_compute(
    trace: values.Trace, gpu: values.GpuSpec, constants: values.FittedConstants
) -> NDArray[np.bool_]:
    """Whether each operator's roof is compute, [N]."""
    rates, index, intensity = _intensities(trace.ops, trace.precision)
    # FLOPs for a byte, of what the GPU reaches of both roofs.
    ridges = [
        rate_for(rate, family, gpu, constants).flops_per_s
        / (constants.fractions[family.bandwidth] * gpu.memory_bytes_per_s)
        for rate, family in rates
    ]
    is_above: NDArray[np.bool_] = intensity > np.array(ridges)[index]
    return is_above


@kept(4)
def _intensities(
    ops: Sequence[values.Op], precision: values.Precision
) -> tuple[tuple[tuple[str, Family], ...], NDArray[np.int64], NDArray[np.float64]]:
    asked = asked_rates(ops, precision)
    distinct = {key: i for i, key in enumerate(dict.fromkeys(asked))}
    intensity = np.array([op.flops / max(1, op.bytes) for op in ops])
    return tuple(distinct), np.array([distinct[key] for key in asked]), intensity


# Of the log of the slowdown, between boards and jobs.
SIGMA_SHARE = 0.27


def lowers(limit_w: float | None, gpu: values.GpuSpec) -> bool:
    """Whether a limit is below the data sheet's; one above it makes nothing faster."""
    return limit_w is not None and limit_w < gpu.tdp_w


def counted(limit_w: float | None, gpu: values.GpuSpec, constants: values.FittedConstants) -> float | None:
    """A limit that slows the GPU down, or None: what kernels of a board told, they told under its own."""
    return limit_w if lowers(limit_w, gpu) and not constants.is_calibrated else None


def slowdown(gpu: values.GpuSpec, limit_w: float) -> float:
    """By which what cores bind takes longer."""
    return slowed(gpu.tdp_w / limit_w - 1)


def sigma_of_limit(
    gpu: values.GpuSpec, limit_w: float | None, by_bound: Mapping[values.Bound, float]
) -> float:
    """Log-normal, of a GPU's whole time: what memory binds is as sure as without a limit.

    ``by_bound`` are seconds of its operators by the roof that each leans on.
    """
    if limit_w is None or not by_bound.get(values.Bound.COMPUTE):
        return 0.0
    share = by_bound[values.Bound.COMPUTE] / sum(by_bound.values())
    return share * SIGMA_SHARE * math.log(slowdown(gpu, limit_w))


def at_limit(
    times: OpTimes,
    trace: values.Trace,
    gpu: values.GpuSpec,
    constants: values.FittedConstants,
    limit_w: float | None,
) -> OpTimes:
    """The operators of a trace on a board that may draw so much; what was measured on it stays.

    ``times`` are of a board without a limit of its own, in the order of the trace.
    """
    if limit_w is None:
        return times
    slow = leans_on_compute(trace, gpu, constants) & (times.methods != METHODS.index(values.Method.MEASURED))
    return replace(times, time_s=np.where(slow, slowdown(gpu, limit_w), 1.0) * times.time_s)


# Of an attention's backward pass: one of its five products makes the scores again.
_SHARE_OF_BACKWARD_ATTENTION = 4 / 5


def step_work(rank: Rank, gpu: values.GpuSpec, layout: values.Layout, share: float) -> values.StepWork:
    """What an iteration gets done, of which each copy of the model takes a share of the profiled batch."""
    trace, copies = rank.trace, max(layout.num_gpus // rank.split.gpus_per_copy, 1)
    flops, rate = _products(trace.ops, trace.precision)
    # Ranks that divide layers may take the same samples.
    share_samples = sharded_over(trace) not in (None, 1) and sharding_group(trace) is None
    batch_size = None if share_samples else trace.batch_size
    return values.StepWork(
        num_samples=None if batch_size is None else batch_size * share * copies,
        model_flops=flops * share * trace.mean_step.work if flops else None,
        peak_flops_per_s=data_sheet_flops_per_s(rate, gpu) if flops else None,
    )


@kept(8)
def _products(ops: Sequence[values.Op], precision: values.Precision) -> tuple[float, str]:
    """FLOPs of the products of the model, 0 where none is known, and the rate that most of them ask for."""
    forward = Counter[tuple[object, ...]]()
    for op in ops:
        if op.phase is values.Phase.FORWARD:
            forward[op.name, op.inputs] += op.count
    by_rate = Counter[str]()
    for op, (rate, family) in zip(ops, asked_rates(ops, precision), strict=True):
        if not family.compute.tensor_cores or op.phase is values.Phase.OPTIMIZER:
            continue
        call, count, flops = (op.name, op.inputs), op.count, float(op.flops)
        # A call that the forward pass made as well, strides included, computes the same again.
        if op.phase is values.Phase.BACKWARD and all(tensor.stride is not None for tensor in op.inputs):
            again = min(count, forward[call])
            forward[call] -= again
            count -= again
        if family.word == ATTENTION.word and base_name(op.name).endswith("_backward"):
            flops *= _SHARE_OF_BACKWARD_ATTENTION
        by_rate[rate] += round(flops * count)
    return float(by_rate.total()), max(by_rate, key=by_rate.__getitem__, default="")
