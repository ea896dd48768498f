"""How long a step takes: its kernels, what launches them, and what GPUs wait for each other.

    step = max(kernels, launches) + waiting for the slowest + a pipeline's bubble + exchange

An A100 alone may take 100 ms a step; eight of them 100 ms, 3 ms for the slowest of eight, and 5 ms of an
all-reduce that the backward pass does not hide.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core import values
from advisor.core.input_time import WAITING
from advisor.predict.batch_share import BatchShare
from advisor.predict.exchange import data_parallel
from advisor.predict.exchange.collective_time import ScalingConstants, batch_variation, slowest
from advisor.predict.exchange.collectives import exchanging_passes, sharded_over
from advisor.predict.host import Copies, beside, launched, launching_s
from advisor.predict.interval import SIGMA_COMMUNICATION, SIGMA_COMPILED, part_of, widened
from advisor.predict.methods import METHODS, OpTimes
from advisor.predict.split import Rank, exchange_within, sigma_of_split


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSums:
    """Seconds of one iteration's operators, the same for any number of GPUs."""

    time_s: NDArray[np.float64]
    """Of each operator, all its calls, [N]."""
    by_phase: Mapping[values.Phase, float]
    sigma: float
    """Log-normal, of their sum."""
    by_family: dict[str, float]
    by_operator: dict[str, float]
    by_method: dict[values.Method, float]

    @property
    def gpu_s(self) -> float:
        """Of all kernels."""
        return sum(self.by_phase.values())

    @property
    def passes_s(self) -> float:
        """Of forward and backward passes."""
        return self.gpu_s - self.by_phase[values.Phase.OPTIMIZER]


def sums_of(times: OpTimes) -> OpSums:
    """The times of operators, added up."""
    columns, time_s = times.columns, times.time_s
    by_method = np.bincount(times.methods, weights=time_s, minlength=len(METHODS))
    by_word = np.bincount(columns.word_index, weights=time_s)
    # Name and method together, in the order in which they come.
    calls = columns.name_index * len(METHODS) + times.methods
    sums = np.bincount(calls, weights=time_s)
    distinct, first = np.unique(calls, return_index=True)
    return OpSums(
        time_s=time_s,
        by_phase=phases_s(times),
        sigma=times.step_sigma,
        by_family=dict(zip(columns.words, by_word.tolist(), strict=True)),
        by_operator={
            f"{columns.names[call // len(METHODS)]} ({METHODS[call % len(METHODS)]})": float(sums[call])
            for call in distinct[np.argsort(first)].tolist()
        },
        by_method=dict(zip(METHODS, by_method.tolist(), strict=True)),
    )


def phases_s(times: OpTimes) -> Mapping[values.Phase, float]:
    """Seconds of the operators of each phase."""
    backward, optimizer = times.columns.is_backward, times.columns.is_optimizer
    members = {
        values.Phase.FORWARD: ~(backward | optimizer),
        values.Phase.BACKWARD: backward,
        values.Phase.OPTIMIZER: optimizer,
    }
    return {phase: float(times.time_s[member].sum()) for phase, member in members.items()}


HOST = "waiting for the host"
OTHERS = "waiting for the slowest GPU"
STAGES = "waiting for other stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStep:
    """What one GPU does in a step, and among which others."""

    trace: values.Trace
    """Of its share of the batch and of the model."""
    gpu: values.GpuSpec
    layout: values.Layout
    """Of all GPUs."""
    power_limit_w: float | None
    """That slows it down; None without one."""
    power_sigma: float
    """Log-normal, of its operators' time, by what is not known of that."""
    rank: Rank
    """How the model is divided among them."""
    share: BatchShare
    """Of the profiled batch."""
    sums: OpSums
    """Of its operators."""
    scaling: ScalingConstants
    stepping: float = 1.0
    """Calls of the optimizer, over those of the trace."""
    copies: Copies | None = None
    """Of gradients into DDP's buckets and back; None where not timed."""

    @property
    def measured_s(self) -> float | None:
        """The step on this GPU, where someone measured it."""
        return self.trace.iteration_s if self.trace.origin_gpu == self.gpu.name else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of a step, and what of it is waiting."""

    device_s: values.Interval
    """All but the input."""
    host_s: float
    """By which launching takes longer than the kernels."""
    others_s: float
    """Until the slowest GPU is there."""
    stages_s: float
    """While a pipeline fills and drains."""
    exchange: data_parallel.Exchange

    @property
    def waits(self) -> dict[str, float]:
        """By what is waited for, but the exchange."""
        named = {HOST: self.host_s, OTHERS: self.others_s, STAGES: self.stages_s}
        return {wait: seconds for wait, seconds in named.items() if seconds}


def step_time(step: RankStep) -> StepTime:
    """Seconds of a step of all GPUs."""
    if step.measured_s is not None:
        own_s = beside(step.measured_s, step.sums.gpu_s, step.sums.sigma)
    else:
        copies = step.copies or Copies()
        own_s = launched(step.trace, step.sums.by_phase, step.sums.sigma, step.stepping, copies)
    within = exchange_within(step.rank, step.share.batch, step.gpu, step.layout)
    # They stand with the exchange where times are listed, and are a rank's own kernels.
    copies_s = 0.0 if step.copies is None or step.measured_s is not None else step.copies.seconds
    # A host that is slower than the kernels stretches the passes that exchanges hide behind.
    stretch = own_s.p50 / (step.sums.gpu_s + copies_s)
    exchange = data_parallel.together(_exchange(step, stretch), within.of_passes(step.trace.accumulation))
    others_s = _waiting(step, batch_variation(step.trace) * step.sums.passes_s / own_s.p50) * own_s.p50
    # Where ranks draw batches alike, they do not wait for them.
    sigma_others_s = (others_s - _waiting(step) * own_s.p50) / values.Z90
    # While a pipeline fills and drains, one pass of a stage for each other stage.
    stages_s = 0.0
    if step.rank.split.pipeline > 1:
        layers_s = float(step.sums.time_s[list(step.rank.in_layers)].sum()) / step.trace.accumulation
        of_pass_s = layers_s * own_s.p50 / step.sums.gpu_s + within.layers.seconds
        stages_s = (step.rank.split.pipeline - 1) * of_pass_s
    device_s = own_s.p50 + others_s + stages_s + exchange.seconds - copies_s
    variance = exchange.sigma_s**2 + sigma_others_s**2 + _variance(step, own_s.p50, device_s)
    gpu_s = step.sums.gpu_s + copies_s
    return StepTime(
        device_s=widened(part_of(device_s, own_s), math.sqrt(variance) / device_s),
        # What sums of the same seconds in another order differ by is nothing to wait for.
        host_s=0.0 if math.isclose(own_s.p50, gpu_s) else own_s.p50 - gpu_s,
        others_s=others_s,
        stages_s=stages_s,
        exchange=exchange,
    )


def bounds_with_waits(
    step: RankStep, by_bound: Mapping[values.Bound, float], time: StepTime
) -> Mapping[values.Bound, float]:
    """What binds a step: the slowest GPU is late with what all of them do, whatever binds it."""
    own, gpu_s = dict(by_bound), sum(by_bound.values())
    if step.measured_s is None and time.host_s:
        # Where launching takes longer than the kernels, the host decides over all the time that they take.
        is_longer = launching_s(step.trace, step.stepping).p50 > gpu_s
        own = (
            {values.Bound.HOST: gpu_s + time.host_s} if is_longer else own | {values.Bound.HOST: time.host_s}
        )
    late = 1 + (time.others_s + time.stages_s) / sum(own.values())
    network = {values.Bound.NETWORK: time.exchange.seconds} if time.exchange.seconds else {}
    return {bound: seconds * late for bound, seconds in own.items()} | network


def _waiting(step: RankStep, of_batches: float = 0.0) -> float:
    """By which share of a step the slowest GPU is late, where batches vary by so much from copy to copy.

    The GPUs of one copy wait for each other in each pass. The first one goes through a pipeline's stages one
    after the other, so fast and slow ones even out; those behind it come at the pace of the slowest stage.
    Copies wait for each other where they exchange gradients: the passes in front of that even out.
    """
    split, passes, layout, scaling = step.rank.split, step.trace.accumulation, step.layout, step.scaling
    if not split.divides_layers and not sharded_over(step.trace):
        scaling = scaling.of_gradients(layout)
    first, behind = scaling.waiting(split.tensor), scaling.waiting(split.gpus_per_copy)
    copies = scaling.waiting(layout.num_gpus // split.pipeline) - first
    drawn = of_batches * slowest(split.copies(layout).num_gpus)
    within = (first + (passes - 1) * behind) / passes
    # Passes of a copy between two waits for the others; who shards the model gathers it in each pass.
    gathers = sharded_over(step.trace) or split.sharding in (values.Sharding.ZERO_3, values.Sharding.HYBRID)
    passes_alone = 1.0 if gathers else passes / exchanging_passes(step.trace)
    return within + math.hypot(copies / math.sqrt(passes_alone), drawn)


def _variance(step: RankStep, alone_s: float, device_s: float) -> float:
    """In square seconds, of what is as sure or unsure on one GPU as on many, and of scaling itself."""
    trace, gpu_s, is_measured = step.trace, step.sums.gpu_s, step.measured_s is not None
    is_several = step.layout.num_gpus > 1
    is_joined = trace.launch is not values.Launch.EAGER and not is_measured
    are_gradients_unknown = is_several and trace.memory.gradient_bytes is None
    errors_s = (
        step.share.sigma * gpu_s,
        step.power_sigma * gpu_s * (not is_measured),
        SIGMA_COMPILED * alone_s * is_joined,
        # A mean of several steps is as much surer as there are more of them.
        batch_variation(trace) / math.sqrt(max(len(trace.steps), 1)) * step.sums.passes_s * (not is_measured),
        step.scaling.sigma * device_s * is_several,
        SIGMA_COMMUNICATION * gpu_s * are_gradients_unknown,
        sigma_of_split(step.rank.split, step.layout) * device_s,
    )
    return sum(error_s**2 for error_s in errors_s)


def _exchange(step: RankStep, stretch: float) -> data_parallel.Exchange:
    trace, sums, gpu, layout, split = step.trace, step.sums, step.gpu, step.layout, step.rank.split
    if sharded_over(trace):
        return data_parallel.exchange_of_shards(
            trace, stretch * sums.passes_s, gpu, layout, slowdown=step.scaling.slowdown
        )
    copies = split.copies(layout)
    # Whether copies share the model or not: else sharing it would seem faster where nothing was measured.
    slowdown = step.scaling.slowdown_on(copies)
    # Groups of copies that hold different parts of the model send over the same network at once.
    crowd = layout.gpus_per_node // copies.gpus_per_node if copies.num_nodes > 1 else 1
    reduced = data_parallel.exchange_of_gradients(
        trace,
        sums.time_s,
        stretch * sums.by_phase[values.Phase.BACKWARD],
        gpu,
        copies,
        slowdown=slowdown,
        crowd=crowd,
        copied=step.copies,
    )
    model = data_parallel.shared_model(trace, crowd)
    shared = data_parallel.exchange_of_zero(
        model, split.sharding, trace, stretch * sums.passes_s, reduced, gpu, copies, slowdown=slowdown
    )
    return data_parallel.together(shared, data_parallel.exchange_beside_gradients(trace, gpu, copies))


def waits_s(estimate: values.IterationEstimate) -> Mapping[str, float]:
    """Median seconds of one iteration in which the GPU waits, by what it waits for."""
    return {wait: estimate.by_operator.get(wait, 0.0) for wait in (HOST, OTHERS, STAGES)} | {
        data_parallel.COMMUNICATION: estimate.communication_s,
        WAITING: max(estimate.iteration_s.p50 - estimate.device_s.p50, 0.0),
    }


def computing_s(estimate: values.IterationEstimate) -> float:
    """Median seconds of one iteration in which the GPU computes."""
    return max(estimate.iteration_s.p50 - sum(waits_s(estimate).values()), 0.0)
