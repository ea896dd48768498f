"""Plan + IterationEstimate -> Option: time, cost, odds and risk of one job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from advisor.errors import InputError
from advisor.predict import cpu_note, holds_buckets, input_note, sharded_over, what_would_fit
from advisor.pricing import DERIVED
from advisor.types import (
    GpuSpec,
    IterationEstimate,
    Job,
    Option,
    Plan,
    Tier,
    Trace,
)
from advisor.units import HOUR_S, format_bytes, format_duration, format_usd
from recommender import software
from recommender.bill import TOLERANCE, breakdown_usd, cost_usd
from recommender.draws import Array, Draws, log_normal, quantiles_of, waits
from recommender.spot import (
    SIGMA_RATE,
    SIGMA_REACQUIRE,
    SpotTerms,
    best_checkpoint_interval_h,
    drawn_hours,
    is_spot,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Draws [n] of one plan: seconds trained, seconds until done, dollars."""

    train_s: Array
    time_s: Array
    cost_usd: Array


def num_iterations(trace: Trace, job: Job, num_gpus: int) -> int:
    """Optimizer steps on ``num_gpus`` with the batch per GPU held (weak scaling).

    Raises:
        InputError: epochs are asked for and nobody knows how many iterations one has.
    """
    if job.iterations is not None:
        return math.ceil(job.iterations / num_gpus)
    per_epoch = job.iterations_per_epoch or trace.iterations_per_epoch
    if per_epoch is None or job.epochs is None:
        raise InputError(
            f"how many iterations an epoch of {trace.script!r} has is unknown ({_why_unknown(trace)}):"
            " add --iterations-per-epoch N, or give --iterations N instead of --epochs."
        )
    # Rounded first: 100 * 0.07 is 7.000000000000001 in floating point, and 7 iterations all the same.
    return math.ceil(round(math.ceil(per_epoch / num_gpus) * job.epochs, 6))


def _why_unknown(trace: Trace) -> str:
    if trace.backend == "kineto":
        return "a profile does not tell"
    return "it uses no torch DataLoader" if trace.num_workers is None else "its data has no length"


def evaluate(
    plan: Plan,
    estimate: IterationEstimate,
    gpu: GpuSpec,
    trace: Trace,
    job: Job,
    draws: Draws,
    spot: SpotTerms,
) -> Option:
    """What one plan means for the job.

    Raises:
        InputError: the number of iterations is unknown.
    """
    iterations = num_iterations(trace, job, plan.num_gpus)
    outcome = _outcome(plan, estimate, iterations, draws, spot)
    odds = _odds(outcome, job)
    removed_by = _removed_by(estimate, gpu, trace, job, odds)
    cost = quantiles_of(outcome.cost_usd)
    work_s = iterations * estimate.iteration_s.p50
    return Option(
        plan=plan,
        estimate=estimate,
        iterations=iterations,
        wait_s=plan.wait_s,
        train_s=quantiles_of(outcome.train_s),
        time_s=quantiles_of(outcome.time_s),
        cost_usd=cost,
        cost_breakdown_usd=breakdown_usd(plan, cost.p50, work_s),
        p_within_budget=odds["budget"],
        p_within_deadline=odds["deadline"],
        risk=_risk(plan, spot),
        feasible=not removed_by,
        removed_by=", ".join(removed_by) or None,
        script_changes=tuple(_changes(plan, gpu, trace, spot, work_s)),
        reasons=(*_misses(job, outcome, odds), *_reasons(plan, estimate, gpu, trace)),
    )


def _outcome(
    plan: Plan, estimate: IterationEstimate, iterations: int, draws: Draws, spot: SpotTerms
) -> Outcome:
    work_s = iterations * log_normal(estimate.iteration_s, draws.prediction)
    train_s, running_s = work_s, work_s
    if is_spot(plan):
        rate = spot.preemptions_per_h * np.exp(SIGMA_RATE * draws.preemption_rate)
        reacquire = spot.reacquire_h * np.exp(SIGMA_REACQUIRE * draws.reacquire)
        makespan_h, billed_h = drawn_hours(
            work_s / HOUR_S, spot, rate_per_h=rate, reacquire_h=reacquire, z=draws.preemption
        )
        train_s, running_s = makespan_h * HOUR_S, billed_h * HOUR_S
    wait_s = waits(plan.wait_s, draws.wait) if plan.wait_s else np.zeros_like(work_s)
    kept_s = plan.startup_s + train_s
    return Outcome(
        train_s=train_s,
        time_s=wait_s + kept_s,
        cost_usd=cost_usd(plan, run_s=plan.startup_s + running_s, kept_s=kept_s),
    )


def _odds(outcome: Outcome, job: Job) -> dict[str, float | None]:
    def share(values: Array, limit: float | None) -> float | None:
        return None if limit is None else float(np.mean(values <= limit * (1 + TOLERANCE)))

    return {
        "budget": share(outcome.cost_usd, job.budget_usd),
        "deadline": share(outcome.time_s, job.deadline_s),
    }


def _removed_by(
    estimate: IterationEstimate, gpu: GpuSpec, trace: Trace, job: Job, odds: Mapping[str, float | None]
) -> list[str]:
    removed = ["memory"] if estimate.fits_memory is False else []
    removed += ["sharding"] if _is_of_another_world(trace, estimate.num_gpus) else []
    removed += ["software"] if software.is_unsupported(gpu) else []
    return removed + [name for name, p in odds.items() if p is not None and p < job.confidence]


def _is_of_another_world(trace: Trace, num_gpus: int) -> bool:
    return sharded_over(trace) not in (None, num_gpus)


def _misses(job: Job, outcome: Outcome, odds: Mapping[str, float | None]) -> list[str]:
    misses = []
    budget, deadline = odds["budget"], odds["deadline"]
    if job.budget_usd is not None and budget is not None and budget < job.confidence:
        cost = format_usd(quantiles_of(outcome.cost_usd).p50)
        misses.append(
            f"over budget: {cost} expected, within {format_usd(job.budget_usd)} with p {budget:.2f}"
        )
    if job.deadline_s is not None and deadline is not None and deadline < job.confidence:
        time = format_duration(quantiles_of(outcome.time_s).p50)
        limit = format_duration(job.deadline_s)
        misses.append(f"too late: {time} expected, within {limit} with p {deadline:.2f}")
    return misses


def _reasons(plan: Plan, estimate: IterationEstimate, gpu: GpuSpec, trace: Trace) -> Iterator[str]:
    if (why := software.why_unsupported(gpu)) is not None:
        yield why
    if _is_of_another_world(trace, plan.num_gpus):
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


def _changes(plan: Plan, gpu: GpuSpec, trace: Trace, spot: SpotTerms, train_s: float) -> Iterator[str]:
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


def _risk(plan: Plan, spot: SpotTerms) -> str:
    if is_spot(plan):
        return f"preemption, {spot.preemptions_per_h:g} per hour assumed"
    return {Tier.LOCAL: "none known", Tier.CLUSTER: "wait", Tier.CLOUD: "capacity not checked"}[plan.tier]
