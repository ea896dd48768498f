"""What the user must know about a plan, and change in the script for it."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.findings import Code, Finding, finding
from advisor.core.input_time import assumed_note, input_note
from advisor.core.units import HOUR_S
from advisor.core.values import IterationEstimate, Plan, Tier, Workload
from advisor.pricing.answer.answering import DERIVED
from advisor.pricing.catalog.renters import is_community_host
from recommender.outcome.gangs import times_of_one
from recommender.outcome.reading import vcpus_per_gpu
from recommender.outcome.rent import price_rise
from recommender.outcome.spot import SpotTerms, best_checkpoint_interval_h, is_spot
from recommender.plans import software

# Below it the rounded factor would read "1.00 times".
_LEAST_RISE = 1.005
_RISKS = {
    Tier.LOCAL: finding(Code.RISK_NONE),
    Tier.CLUSTER: finding(Code.RISK_WAIT),
    Tier.CLOUD: finding(Code.RISK_CAPACITY),
}


def reasons_of(plan: Plan, workload: Workload, estimate: IterationEstimate) -> Iterator[Finding]:
    """Why it fits or not, what feeds it, and which of its figures are unknown or assumed.

    Args:
        plan: what to rent or use.
        workload: on its GPUs.
        estimate: the workload's, fed by the plan's machine.
    """
    if plan.blocked is not None:
        yield plan.blocked
    if (why := software.why_unsupported(workload.gpu)) is not None:
        yield why
    yield from (note for note in estimate.assumptions if note.code is Code.ATTENTION)
    yield from workload.memory_notes
    yield from _input(plan, estimate)
    yield from workload.scaling_notes
    if plan.offer is not None and plan.offer.source.startswith(DERIVED):
        yield finding(Code.PRICE_DERIVED, source=plan.offer.source)
    if plan.offer is not None and is_community_host(plan.offer.provider, plan.offer.region):
        yield finding(Code.COMMUNITY_HOST, provider=plan.offer.provider)
    if plan.usd_per_h is None:
        yield finding(Code.COST_UNKNOWN)
    yield from plan.notes
    if plan.wait_s is None:
        yield finding(Code.WAIT_UNKNOWN)


def _input(plan: Plan, estimate: IterationEstimate) -> Iterator[Finding]:
    note = input_note(estimate, vcpus_per_gpu(plan), names_gpu_time=True)
    assumed = assumed_note(estimate.input)
    if note is not None:
        yield note
    # What is known to hide, whatever it takes, is not worth a word.
    if assumed is not None and estimate.input_s and estimate.input_s.p90 > estimate.device_s.p50:
        yield assumed


def changes_of(plan: Plan, workload: Workload, spot: SpotTerms, train_s: float) -> Iterator[Finding]:
    """What to change in the script; ``train_s`` is without preemptions."""
    work = workload.script_work
    yield from work.change
    yield from software.changes(plan, workload.gpu)
    if plan.copied_s:
        yield finding(Code.USE_NVME)
    yield from work.sharing
    if plan.num_nodes > 1:
        yield finding(
            Code.START_ON_NODES,
            num_nodes=plan.num_nodes,
            gpus_per_node=plan.layout.gpus_per_node,
            is_rented=plan.offer is not None,
        )
    yield from work.tuning
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
