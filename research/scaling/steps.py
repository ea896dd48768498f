"""A step of several GPUs for many constants of scaling, whose operators are timed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from advisor.core.values import WHOLE, Z90, GpuSpec, Interval, Layout, Trace
from advisor.predict.batch_share import BatchShare
from advisor.predict.constants import constants_for
from advisor.predict.exchange.collective_time import ScalingConstants
from advisor.predict.exchange.data_parallel import COPY_BACK, bucket_copies
from advisor.predict.host import Copies
from advisor.predict.knowledge import shipped
from advisor.predict.methods import op_times
from advisor.predict.split import rank_of
from advisor.predict.step_time import OpSums, RankStep, step_time, sums_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A trace on one GPU."""

    trace: Trace
    gpu: GpuSpec
    sums: OpSums
    copies: Copies | None

    def lasting(self, step_s: float) -> Timed:
        """The same where its kernels take so long together, as somebody measured."""
        factor = step_s / self.sums.gpu_s
        by_phase = {phase: factor * seconds for phase, seconds in self.sums.by_phase.items()}
        return replace(self, sums=replace(self.sums, time_s=factor * self.sums.time_s, by_phase=by_phase))


def timed_on(trace: Trace, gpu: GpuSpec) -> Timed:
    """The trace, and how DDP would copy its gradients, on a GPU."""
    constants, knowledge, copying = constants_for(gpu, shipped()), shipped(), bucket_copies(trace)
    times = op_times(trace, gpu, constants, knowledge)
    copies = None
    if copying:
        lasts_s = op_times(replace(trace, ops=copying), gpu, constants, knowledge).time_s
        back_s = sum(s for op, s in zip(copying, lasts_s, strict=True) if op.name == COPY_BACK)
        num_calls = sum(op.count for op in copying)
        copies = Copies(num_calls=num_calls, seconds=float(lasts_s.sum()), last_s=float(back_s))
    return Timed(trace=trace, gpu=gpu, sums=sums_of(times), copies=copies)


def step_of(timed: Timed, layout: Layout, scaling: ScalingConstants) -> tuple[float, float]:
    """Median seconds of a step, and its log-normal sigma beyond one GPU's."""
    one, several = (_seconds(timed, each, scaling) for each in (Layout(gpus_per_node=1), layout))
    variance = _sigma(several) ** 2 - (_sigma(one) * one.p50 / several.p50) ** 2
    return several.p50, math.sqrt(max(variance, 0.0))


def _seconds(timed: Timed, layout: Layout, scaling: ScalingConstants) -> Interval:
    step = RankStep(
        trace=timed.trace, gpu=timed.gpu, layout=layout, power_limit_w=None, power_sigma=0.0,
        rank=rank_of(timed.trace, WHOLE), share=BatchShare(), sums=timed.sums, scaling=scaling,
        copies=None if layout.num_gpus == 1 else timed.copies,
    )  # fmt: skip
    return step_time(step).device_s


def _sigma(interval: Interval) -> float:
    return math.log(interval.p90 / interval.p50) / Z90
