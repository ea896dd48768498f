"""What the user must know about a plan, and change in the script for it."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import Fit, GpuSpec, IterationEstimate, Plan, Scaling, Sharding, Split, Tier, Trace
from advisor.predict.exchange.collectives import is_known_at, sharded_over
from advisor.predict.loading import assumed_note, input_note
from advisor.pricing.providers import is_community_host
from advisor.pricing.sources.protocol import DERIVED
from recommender.outcome.gangs import times_of_one
from recommender.outcome.rent import price_rise
from recommender.outcome.spot import SpotTerms, best_checkpoint_interval_h, is_spot
from recommender.outcome.steps import Source, Steps
from recommender.outcome.vcpus import vcpus_per_gpu
from recommender.plans import software

# Changes that a reason names; all are in the estimate.
_MOST_REMEDIES = 3
# Below it the rounded factor would read "1.00 times".
_LEAST_RISE = 1.005
_RISKS = {
    Tier.LOCAL: finding(Code.RISK_NONE),
    Tier.CLUSTER: finding(Code.RISK_WAIT),
    Tier.CLOUD: finding(Code.RISK_CAPACITY),
}


def is_of_another_world(trace: Trace, num_gpus: int) -> bool:
    """Whether the trace is of a rank that holds a part of the model, and tells nothing of so many ranks."""
    return not is_known_at(trace, num_gpus)


def reasons_of(
    plan: Plan, estimate: IterationEstimate, gpu: GpuSpec, trace: Trace, steps: Steps
) -> Iterator[Finding]:
    """Why it fits or not, what feeds it, and which of its figures are unknown or assumed."""
    if plan.blocked is not None:
        yield plan.blocked
    if (why := software.why_unsupported(gpu)) is not None:
        yield why
    yield from (note for note in estimate.assumptions if note.code is Code.ATTENTION)
    yield from _memory(plan, estimate, trace)
    yield from _input(plan, estimate)
    yield from _scaling(plan.num_gpus, trace, steps)
    if plan.offer is not None and plan.offer.source.startswith(DERIVED):
        yield finding(Code.PRICE_DERIVED, source=plan.offer.source)
    if plan.offer is not None and is_community_host(plan.offer.provider, plan.offer.region):
        yield finding(Code.COMMUNITY_HOST, provider=plan.offer.provider)
    if plan.usd_per_h is None:
        yield finding(Code.COST_UNKNOWN)
    yield from plan.notes
    if plan.wait_s is None:
        yield finding(Code.WAIT_UNKNOWN)


def _memory(plan: Plan, estimate: IterationEstimate, trace: Trace) -> Iterator[Finding]:
    if is_of_another_world(trace, plan.num_gpus):
        yield finding(Code.SHARDING, num_ranks=sharded_over(trace), num_gpus=plan.num_gpus)
    elif estimate.fits_memory is None:
        yield finding(Code.MEMORY_UNKNOWN)
    if estimate.fits_memory is False:
        yield _does_not_fit(estimate, trace)
    elif estimate.memory is not None and estimate.fit is Fit.LIKELY:
        yield finding(
            Code.MEMORY_TIGHT,
            needed_bytes=estimate.memory_bytes,
            needed_p90_bytes=round(estimate.memory.need_bytes.p90),
            available_bytes=estimate.memory_limit_bytes,
        )


def _does_not_fit(estimate: IterationEstimate, trace: Trace) -> Finding:
    largest = estimate.largest_batch
    return finding(
        Code.MEMORY,
        needed_bytes=estimate.memory_bytes,
        available_bytes=estimate.memory_limit_bytes,
        fitting_share=None if largest is None else largest.share,
        batch_size=trace.batch_size,
        fitting_batch_size=None if largest is None else largest.likely,
        remedies=[
            {"changes": one.changes, "needed_bytes": round(one.need_bytes.p50), "slower": one.slower.p50}
            for one in estimate.remedies[:_MOST_REMEDIES]
        ],
    )


def _input(plan: Plan, estimate: IterationEstimate) -> Iterator[Finding]:
    note = input_note(estimate, vcpus_per_gpu(plan), names_gpu_time=True)
    assumed = assumed_note(estimate.input)
    if note is not None:
        yield note
    # What is known to hide, whatever it takes, is not worth a word.
    if assumed is not None and estimate.input_s and estimate.input_s.p90 > estimate.device_s.p50:
        yield assumed


def _scaling(num_gpus: int, trace: Trace, steps: Steps) -> Iterator[Finding]:
    """What the steps on more or fewer GPUs than were profiled rest on."""
    if num_gpus == steps.num_ranks:
        return
    source = str(steps.source)
    if steps.scaling is Scaling.STRONG:
        yield finding(
            Code.GLOBAL_BATCH_HELD,
            source=source,
            global_batch_size=steps.global_batch_size(num_gpus),
            batch_size=trace.batch_size,
        )
    elif steps.source is Source.ASSUMED and steps.scaling is Scaling.UNSHARED:
        if steps.copies(num_gpus) > 1:
            yield finding(Code.SHARING_UNKNOWN)
    elif steps.source is Source.ASSUMED and (steps.batch_size is None or trace.world_size is not None):
        yield finding(Code.SCALING_ASSUMED, batch_size=steps.batch_size, num_gpus=num_gpus)


def changes_of(
    plan: Plan, gpu: GpuSpec, trace: Trace, steps: Steps, spot: SpotTerms, train_s: float
) -> Iterator[Finding]:
    """What to change in the script; ``train_s`` is without preemptions."""
    yield from software.changes(plan, gpu)
    if plan.copied_s:
        yield finding(Code.USE_NVME)
    if plan.num_gpus > 1 and not steps.split.is_none:
        yield from _division(steps.split)
    elif plan.num_gpus > 1 and not _is_parallel(trace) and steps.scaling is not Scaling.UNSHARED:
        yield from _data_parallel(trace)
    if plan.num_nodes > 1:
        yield finding(
            Code.START_ON_NODES,
            num_nodes=plan.num_nodes,
            gpus_per_node=plan.layout.gpus_per_node,
            is_rented=plan.offer is not None,
        )
    batch_size, profiled = (steps.global_batch_size(count) for count in (plan.num_gpus, steps.num_ranks))
    if batch_size != profiled:
        yield finding(Code.RETUNE_LEARNING_RATE, global_batch_size=batch_size, batch_size=profiled)
    interval_h = spot.checkpoint_interval_h
    needed = is_spot(plan) and spot.preemptions_per_h > 0
    if needed and interval_h is not None and train_s > interval_h * HOUR_S:
        best_h = best_checkpoint_interval_h(spot)
        yield finding(Code.SAVE_CHECKPOINTS, interval_s=interval_h * HOUR_S, best_interval_s=best_h * HOUR_S)


def risk_of(plan: Plan, spot: SpotTerms, run_days: float = 0.0) -> Finding:
    """What can go wrong there, and where its rate comes from."""
    if not is_spot(plan):
        return _RISKS[plan.tier]
    rise = price_rise(plan, run_days)
    return finding(
        Code.RISK_PREEMPTION,
        num_nodes=plan.num_nodes,
        preemptions_per_h=spot.preemptions_per_h,
        times_of_one=times_of_one(spot.num_nodes),
        rate_source=spot.rate_source,
        price_rise=rise if rise >= _LEAST_RISE else None,
    )


def _is_parallel(trace: Trace) -> bool:
    # A script that made a group elsewhere does so under torchrun.
    return bool(trace.collectives) or trace.work_elsewhere is not None


def _data_parallel(trace: Trace) -> Iterator[Finding]:
    """How several GPUs come to share the data of a script that was not seen to use more than one."""
    if trace.parallel_by is not None:
        yield finding(Code.START_WITH_TORCHRUN, library=trace.parallel_by)
        return
    yield finding(Code.WRAP_IN_DDP)
    if trace.has_sparse_gradients:
        yield finding(Code.GATHER_SPARSE_GRADIENTS)
    if trace.accumulation > 1:
        yield finding(Code.USE_NO_SYNC)


def _division(split: Split) -> Iterator[Finding]:
    """How the model is to be divided, which no script is seen to do by itself."""
    if split.sharding is not Sharding.NONE:
        yield finding(Code.SHARD_MODEL, sharding=str(split.sharding))
    if split.divides_layers:
        yield finding(Code.DIVIDE_LAYERS, tensor=split.tensor, pipeline=split.pipeline)
