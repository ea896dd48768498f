"""``predict(trace, gpu, num_gpus)``: time and memory of one iteration on a GPU of the catalog."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from advisor.core import values
from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import BatchNotProfiled, Supposed
from advisor.core.findings.about_options import Unknown
from advisor.core.input_time import assumed_note, fed
from advisor.predict.batch_share import EXPONENT, BatchShare, batch_share, times_at, trace_at
from advisor.predict.constants import constants_for
from advisor.predict.distinct import SameTrace, merged
from advisor.predict.exchange.collectives import gathered_bytes, resharded, shard_growth, undivided
from advisor.predict.exchange.data_parallel import COPY_BACK, bucket_copies, shared_state_ranks
from advisor.predict.footprint import memory_need
from advisor.predict.host import Copies
from advisor.predict.interval import Correction, corrected
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.largest_batch import fitted
from advisor.predict.loading import input_work, is_uncounted, work_beside_measured
from advisor.predict.methods import OpTimes, in_a_step, op_times
from advisor.predict.notes import limit_notes, method_notes
from advisor.predict.split import Rank, check_split, in_flight, in_micro_batches, rank_of
from advisor.predict.step_time import OpSums, RankStep, bounds_with_waits, phases_s, step_time, sums_of
from advisor.predict.utilization import at_limit, bounds_of, counted, sigma_of_limit, step_work
from advisor.predict.what_if.compiled import as_run


def predict(
    trace: values.Trace,
    gpu: values.GpuSpec,
    num_gpus: int | values.Layout = 1,
    *,
    knowledge: Knowledge | None = None,
    split: values.Split = values.WHOLE,
) -> values.IterationEstimate:
    """Time per iteration of ``trace`` on ``num_gpus`` of ``gpu``, the batch per GPU held.

    Args:
        num_gpus: GPUs of one node, or how they are laid out; by data parallelism if more than one.
        knowledge: constants and networks, by default what ships.
        split: how the model is supposed to be divided; by default each GPU has all of it.

    Raises:
        InputError: ``num_gpus`` is below 1, the trace has no operators, an argument is of another kind, or
            the model cannot be divided so.
        CatalogError: constants or networks are missing or broken.
    """
    return predict_counts(trace, gpu, [num_gpus], knowledge=knowledge, split=split)[0]


def predict_counts(
    trace: values.Trace,
    gpu: values.GpuSpec,
    counts: Sequence[int | values.Layout],
    *,
    knowledge: Knowledge | None = None,
    share_of: Callable[[int], float] = lambda _: 1.0,
    correction: Correction | None = None,
    split: values.Split = values.WHOLE,
) -> tuple[values.IterationEstimate, ...]:
    """As :func:`predict` for several counts of one GPU; operators are timed once.

    Args:
        share_of: what each of so many GPUs takes of the profiled batch.
        correction: what earlier runs on this GPU say; None without any.
        split: as there; all layouts suit it.
    """
    # Integers of numpy are as good as Python's.
    layouts = [n if isinstance(n, values.Layout) else values.Layout(gpus_per_node=int(n)) for n in counts]
    if not trace.ops:
        raise InputError("the trace has no operators: there is nothing to predict.")
    check_split(trace, split, layouts)
    estimate = prediction_on(
        trace, gpu, knowledge=knowledge, share_of=share_of, correction=correction, split=split
    )
    return tuple(map(estimate, layouts))


def prediction_on(
    trace: values.Trace,
    gpu: values.GpuSpec,
    *,
    knowledge: Knowledge | None = None,
    share_of: Callable[[int], float] = lambda _: 1.0,
    correction: Correction | None = None,
    split: values.Split = values.WHOLE,
) -> Callable[[values.Layout], values.IterationEstimate]:
    """The same of whichever layout comes to be asked about; arguments as there, and checked there."""
    knowledge = knowledge or shipped()
    trace = trace if split.is_none else undivided(trace)
    eager = replace(trace, ops=merged(trace.ops))
    rank, held = rank_of(as_run(eager, gpu.vendor), split), rank_of(eager, split).trace
    clock = _Clock(gpu=gpu, constants=constants_for(gpu, knowledge), knowledge=knowledge)
    timed_at, changed_s = cache(partial(clock.timed, rank)), cache(clock.changed_s)
    copies = cache(partial(clock.copies, rank.trace))

    def estimate(layout: values.Layout) -> values.IterationEstimate:
        limit_w = counted(layout.power_limit_w, gpu, clock.constants)
        timed = timed_at(limit_w)
        share = in_micro_batches(batch_share(rank.trace, share_of(layout.num_gpus)), rank.trace, split)
        step = RankStep(
            trace=rank.trace, gpu=gpu, layout=layout, power_limit_w=limit_w,
            power_sigma=sigma_of_limit(gpu, limit_w, timed.by_bound), rank=rank, share=share,
            sums=timed.sums, scaling=knowledge.scaling,
            copies=None if layout.num_gpus == 1 or split.divides_layers else copies(limit_w),
        )  # fmt: skip
        return fitted(
            fed(corrected(_at_share(step, timed), correction), None),
            in_flight(trace_at(resharded(held, layout.num_gpus), share), split),
            gpu,
            partial(changed_s, share, limit_w),
            slowdown=knowledge.scaling.slowdown_on(split.copies(layout)),
        )

    return estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """The operators of a trace on one GPU, as often as they are asked about."""

    times: OpTimes
    """Without what they rest on, of which ``notes`` tells: it may be kept for many GPUs."""
    sums: OpSums
    by_bound: Mapping[values.Bound, float]
    notes: list[Finding]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Clock:
    """Times operators on one GPU, under a limit of power or none."""

    gpu: values.GpuSpec
    constants: values.FittedConstants
    knowledge: Knowledge

    def times(self, trace: values.Trace, limit_w: float | None) -> OpTimes:
        """Of the trace's operators, as they are."""
        alone = op_times(trace, self.gpu, self.constants, self.knowledge)
        times = in_a_step(alone, self.knowledge.excess)
        return at_limit(times, trace, self.gpu, self.constants, limit_w)

    def timed(self, rank: Rank, limit_w: float | None) -> _Timed:
        """Those of a rank's trace, and what they add up to."""
        trace, times = rank.trace, self.times(rank.trace, limit_w)
        if rank.split.tensor > 1:
            # No part of an operator takes less than its part of the whole one.
            least_s = self.times(rank.undivided, limit_w).time_s / rank.split.tensor
            times = replace(times, time_s=np.maximum(times.time_s, least_s))
        return _Timed(
            times=replace(times, constants={}),
            sums=sums_of(times),
            by_bound=bounds_of(trace, self.gpu, self.constants, times),
            notes=method_notes(trace, self.gpu, self.constants, times),
        )

    def copies(self, trace: values.Trace, limit_w: float | None) -> Copies | None:
        """How DDP would copy the trace's gradients; None where their shapes are unknown."""
        ops = bucket_copies(trace)
        if not ops:
            return None
        times = self.times(replace(trace, ops=ops, launch=values.Launch.EAGER), limit_w)
        is_back = np.array([op.name == COPY_BACK for op in ops])
        return Copies(
            num_calls=sum(op.count for op in ops),
            seconds=float(times.time_s.sum()),
            last_s=float(times.time_s[is_back].sum()),
        )

    def changed_s(
        self, share: BatchShare, limit_w: float | None, changed: SameTrace
    ) -> Mapping[values.Phase, float]:
        """Seconds by phase of a changed script, with a share of the profiled batch."""
        times = self.times(as_run(changed.trace, self.gpu.vendor), limit_w)
        return phases_s(times_at(times, replace(share, passes=1.0)))


def _at_share(step: RankStep, timed: _Timed) -> values.IterationEstimate:
    """The estimate where each GPU takes a share of the profiled batch, without its input."""
    trace, share, layout, split = step.trace, step.share, step.layout, step.rank.split
    growth = shard_growth(trace, layout.num_gpus) / shared_state_ranks(split.sharding, split.copies(layout))
    # Of equal parts a rank looks at each tensor in its own by itself.
    stepping = 1.0 if gathered_bytes(trace) is None else growth
    step = replace(step, trace=resharded(trace, layout.num_gpus), stepping=stepping)
    if share == BatchShare() and growth == 1:
        return _estimate(step, timed.by_bound, timed.notes)
    there, sums = in_flight(trace_at(step.trace, share), split), sums_of(times_at(timed.times, share, growth))
    before_s, after_s = step.sums.gpu_s, sums.gpu_s
    if trace.iteration_s is not None:
        is_here = step.measured_s is not None
        measured_s = trace.iteration_s - (before_s - after_s) if is_here else trace.iteration_s * share.passes
        there = replace(there, iteration_s=measured_s)
    # What binds an operator hardly changes with its batch.
    bounds = {bound: seconds * after_s / before_s for bound, seconds in timed.by_bound.items()}
    notes = timed.notes
    if share.whole != 1:
        notes = [*notes, BatchNotProfiled(share=share.whole, batch=share.batch, exponent=EXPONENT)]
    return _estimate(replace(step, trace=there, sums=sums), bounds, notes)


def _estimate(
    step: RankStep, by_bound: Mapping[values.Bound, float], notes: Sequence[Finding]
) -> values.IterationEstimate:
    trace, gpu, measured_s, split = step.trace, step.gpu, step.measured_s, step.rank.split
    time, memory = step_time(step), memory_need(trace, gpu, step.layout, split)
    bounds = bounds_with_waits(step, by_bound, time)
    work = input_work(trace) if measured_s is None else work_beside_measured(trace, measured_s)
    by_method = step.sums.by_method
    by_method = by_method | {
        values.Method.ROOFLINE: by_method[values.Method.ROOFLINE] + sum(time.waits.values())
    }
    assumed = assumed_note(work)
    return values.IterationEstimate(
        gpu=gpu.name,
        layout=step.layout,
        iteration_s=time.device_s,
        device_s=time.device_s,
        input=work,
        input_s=None,
        by_bound=bounds,
        by_family=_sorted(time.waits | step.sums.by_family),
        by_method={method: seconds for method, seconds in by_method.items() if seconds},
        by_operator=_sorted(time.waits | step.sums.by_operator),
        communication_s=time.exchange.seconds,
        loading_s=0.0,
        memory=memory,
        memory_limit_bytes=gpu.memory_bytes,
        split=split,
        work=step_work(step.rank, gpu, step.layout, step.share.whole),
        assumptions=(
            *([] if split.is_none else [Supposed(split=split.name)]),
            *notes,
            *limit_notes(step, bounds, has_memory=memory is not None),
            *([Unknown(what="loading")] if is_uncounted(trace, time.device_s.p50) else []),
            *([] if assumed is None else [assumed]),
        ),
    )


def _sorted(seconds: Mapping[str, float]) -> Mapping[str, float]:
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))
