"""An iteration in which each GPU takes another share of the batch than the one that was profiled.

Fewer passes of accumulation take so much less time. A smaller batch in one pass does not: kernels fill a GPU
less well. Over 227 doublings of the batch of five networks on K80, P100 and V100 (the throughputs published
with Narayanan et al., OSDI 2020) time grew by a median power of 0.73 of the batch, and by at most 1.0 in nine
of ten. So time shrinks by the power 0.73, and its 10 % quantile by the batch itself: never faster than that.
A larger batch takes as much longer as it is larger. The optimizer's time stays, and so does the host's.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from advisor.core.values import Z90, MemoryUse, Op, Phase, Trace
from advisor.predict.distinct import kept
from advisor.predict.exchange.collectives import kinds_of_each_pass
from advisor.predict.footprint import copied_bytes
from advisor.predict.loading import COPY_TO_GPU
from advisor.predict.methods import OpTimes

EXPONENT = 0.73
SIGMA_PER_LOG = (1 - EXPONENT) / Z90


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShare:
    """What each GPU takes of the profiled batch: so many of its passes, of so much of their samples."""

    passes: float = 1.0
    """Over those that were profiled."""
    batch: float = 1.0
    """Of one pass, over the profiled one."""

    @property
    def whole(self) -> float:
        """Of the samples of a step."""
        return self.passes * self.batch

    @property
    def time(self) -> float:
        """Of forward and backward, in the median."""
        return self.passes * (self.batch**EXPONENT if self.batch < 1 else self.batch)

    @property
    def sigma(self) -> float:
        """Log-normal, of that time."""
        return SIGMA_PER_LOG * abs(math.log(self.batch))


def batch_share(trace: Trace, share: float) -> BatchShare:
    """How a script takes a share of its batch: by passes where it accumulates, and else by smaller ones."""
    elsewhere = trace.work_elsewhere
    accumulates = max(trace.accumulation, 1 if elsewhere is None else elsewhere.accumulation) > 1
    passes = max(share, 1 / trace.accumulation) if accumulates else 1.0
    return BatchShare(passes=passes, batch=share / passes)


def trace_at(trace: Trace, share: BatchShare) -> Trace:
    """The trace with its samples, passes and memory at a share; operators keep their costs."""
    loading_s, batch_size = trace.data_loading_s, trace.batch_size
    recurring = kinds_of_each_pass(trace) if share.passes != 1 else ()
    collectives = (
        replace(one, count=_times(one.count, share.passes)) if one.kind in recurring else one
        for one in trace.collectives
    )
    return replace(
        trace,
        batch_size=None if batch_size is None else max(1, round(batch_size * share.whole)),
        accumulation=_times(trace.accumulation, share.passes),
        data_loading_s=None if loading_s is None else loading_s * share.whole,
        memory=memory_at(trace, share.batch),
        ops=_ops_at(trace.ops, share) if share != BatchShare() else trace.ops,
        collectives=tuple(collectives),
    )


def times_at(times: OpTimes, share: BatchShare, optimizer: float = 1.0) -> OpTimes:
    """The times of the operators at a share; the optimizer's are so many times as long."""
    time_s = times.time_s * np.where(times.columns.is_optimizer, optimizer, share.time)
    return replace(times, time_s=time_s)


@kept(8)
def _ops_at(ops: tuple[Op, ...], share: BatchShare) -> tuple[Op, ...]:
    return tuple(op if op.phase is Phase.OPTIMIZER else _op_at(op, share) for op in ops)


def _op_at(op: Op, share: BatchShare) -> Op:
    """As often as there are passes; what is copied to the GPU is the samples that must be loaded."""
    if op.name == COPY_TO_GPU and op.inputs and op.inputs[0].shape:
        num_samples, *sample = op.inputs[0].shape
        batch = replace(op.inputs[0], shape=(max(1, round(num_samples * share.batch)), *sample))
        op = replace(op, inputs=(batch, *op.inputs[1:]))
    return replace(op, count=_times(op.count, share.passes))


def _times(count: int, passes: float) -> int:
    """Rounded up, but for the error of floats: part of a pass is a pass."""
    return max(1, math.ceil(round(count * passes, 6)))


def memory_at(trace: Trace, batch: float) -> MemoryUse:
    """With so many times the activations, but for the weights that autocast copies."""
    memory, copies = trace.memory, copied_bytes(trace)
    if memory.activation_bytes is None:
        return memory

    def growth(held_bytes: int | None) -> int:
        return round(max((held_bytes or 0) - copies, 0) * (batch - 1))

    if memory.pass_peak_bytes is None or memory.peak_bytes is None:
        more = growth(memory.activation_bytes)
        peak_bytes = None if memory.peak_bytes is None else memory.peak_bytes + more
        return replace(memory, activation_bytes=memory.activation_bytes + more, peak_bytes=peak_bytes)
    pass_bytes, more = memory.pass_peak_bytes, growth(memory.pass_activation_bytes)
    # What the optimizer's step holds stays.
    step_bytes = memory.peak_bytes if memory.peak_bytes > pass_bytes else 0
    peak_bytes = max(pass_bytes + more, step_bytes)
    return replace(
        memory,
        activation_bytes=max(memory.activation_bytes + peak_bytes - memory.peak_bytes, 0),
        peak_bytes=peak_bytes,
        pass_activation_bytes=(memory.pass_activation_bytes or 0) + more,
        pass_peak_bytes=pass_bytes + more,
        most_activation_bytes=(memory.most_activation_bytes or 0) + growth(memory.most_activation_bytes),
    )
