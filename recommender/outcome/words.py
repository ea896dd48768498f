"""What the user must know about a plan, and change in the script for it, in words."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.units import HOUR_S, format_bytes, format_duration
from advisor.core.values import GpuSpec, IterationEstimate, Plan, Tier, Trace
from advisor.predict.exchange.collectives import holds_buckets, sharded_over
from advisor.predict.loading import cpu_note, input_note
from advisor.predict.memory import what_would_fit
from advisor.pricing.answer.answering import DERIVED
from recommender.outcome.spot import SpotTerms, best_checkpoint_interval_h, is_spot
from recommender.outcome.spot_price import price_rise
from recommender.plans import software


def is_of_another_world(trace: Trace, num_gpus: int) -> bool:
    """Whether the trace is of a rank that holds a part of the model, with another number of ranks."""
    return sharded_over(trace) not in (None, num_gpus)


def reasons_of(plan: Plan, estimate: IterationEstimate, gpu: GpuSpec, trace: Trace) -> Iterator[str]:
    """Why it fits or not, what feeds it, and which of its figures are unknown."""
    if plan.blocked is not None:
        yield plan.blocked
    if (why := software.why_unsupported(gpu)) is not None:
        yield why
    if is_of_another_world(trace, plan.num_gpus):
        yield (
            f"the trace is of one of {sharded_over(trace)} ranks that share the model: profile with"
            f" --world {plan.num_gpus} for {plan.num_gpus}"
        )
    elif estimate.fits_memory is None:
        yield "memory unknown: the profile does not tell how much the script needs"
    if estimate.memory_bytes is not None and not estimate.fits_memory:
        need, has = format_bytes(estimate.memory_bytes), format_bytes(estimate.memory_limit_bytes)
        copies = 1 if holds_buckets(trace) else plan.num_gpus
        fix = what_would_fit(trace.memory, gpu, trace.batch_size, copies)
        yield f"does not fit: needs {need}, the GPU has {has}; {fix}"
    vcpus = plan.offer.num_vcpus if plan.offer is not None else None
    notes = [note for note in (input_note(trace, estimate), cpu_note(trace, estimate, vcpus)) if note]
    yield from notes
    if trace.batch_size and not notes:
        rate = trace.batch_size * plan.num_gpus / estimate.iteration_s.p50
        yield f"the input pipeline must deliver {rate:,.0f} samples/s"
    if plan.offer is not None and plan.offer.source.startswith(DERIVED):
        yield f"price never quoted, {plan.offer.source}"
    if plan.usd_per_h is None:
        yield "cost unknown: nobody configured an hourly cost, so it counts as $0.00"
    yield from _not_counted(plan)
    yield from plan.notes
    if plan.wait_s is None:
        yield "wait unknown: nobody configured or measured it, so it counts as 0"


def _not_counted(plan: Plan) -> Iterator[str]:
    region = plan.offer.region if plan.offer is not None else plan.provider
    if plan.storage_usd_per_h is None:
        yield f"storage not counted: no rate for {region}"
    if plan.egress_usd is None:
        yield f"data transfer not counted: no rate for {region}"


def changes_of(plan: Plan, gpu: GpuSpec, trace: Trace, spot: SpotTerms, train_s: float) -> Iterator[str]:
    """What to change in the script; ``train_s`` is without preemptions."""
    yield from software.changes(plan, gpu)
    if plan.num_gpus > 1 and not trace.collectives:
        yield "wrap the model in DistributedDataParallel, use a DistributedSampler, start with torchrun"
        if trace.accumulation > 1:
            yield "accumulate gradients under no_sync(), or every pass exchanges them"
    if plan.num_gpus > 1 and trace.batch_size:
        batch, alone = trace.batch_size * plan.num_gpus, trace.batch_size
        yield f"retune the learning rate: a step takes {batch:,} samples instead of {alone:,}"
    interval_h = spot.checkpoint_interval_h
    needed = is_spot(plan) and spot.preemptions_per_h > 0
    if needed and interval_h is not None and train_s > interval_h * HOUR_S:
        every = format_duration(interval_h * HOUR_S)
        best_h = best_checkpoint_interval_h(spot)
        best = f" (least is lost at {format_duration(best_h * HOUR_S)})" if best_h else ""
        yield f"save a checkpoint every {every} and resume from it{best}"


def risk_of(plan: Plan, spot: SpotTerms) -> str:
    """What can go wrong there, and where its rate comes from."""
    if is_spot(plan):
        gang = f" of all {plan.num_nodes} nodes at once" if plan.num_nodes > 1 else ""
        rise = price_rise(plan)
        dearer = f"; 9 of 10 past hours cost up to {rise:.2f} times today's price" if rise >= 1.005 else ""
        return f"preemption{gang}, {spot.preemptions_per_h:.3g} per hour {spot.rate_source}{dearer}"
    return {Tier.LOCAL: "none known", Tier.CLUSTER: "wait", Tier.CLOUD: "capacity not checked"}[plan.tier]
