"""What the user must know about a plan, change in the script for it, and why one is refused."""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import PurePath

import numpy as np

from advisor.core import values
from advisor.core.findings import Finding, about_options
from advisor.core.findings.about_estimates import AddCheckpoints, EditScript, SaveCheckpoints, StartOnNodes
from advisor.core.input_time import assumed_note, input_note
from advisor.core.units import HOUR_S
from advisor.pricing.providers import is_community_host
from advisor.pricing.sources.protocol import DERIVED
from recommender.outcome.bill import cost_usd, price_rise
from recommender.outcome.feeding import instance_of, vcpus_per_gpu
from recommender.outcome.nodes import times_of_one
from recommender.outcome.spot import SpotTerms, best_checkpoint_interval_h, is_spot, makespan_and_billed_h
from recommender.queue.waits import Asked, forbidding

# Sources: CUDA 12.0 release notes (Kepler removed), CUDA 13.0 release notes (Maxwell, Pascal and Volta
# removed). PyTorch's wheels follow the CUDA version they are built with.

CUDA_12_LEAST = (5, 0)
CUDA_13_LEAST = (7, 5)


def capability(gpu: values.GpuSpec) -> tuple[int, int] | None:
    """``(7, 5)`` for "7.5"; None for what is no CUDA device."""
    major, dot, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor)) if dot and major.isdigit() and minor.isdigit() else None


def why_unsupported(gpu: values.GpuSpec) -> Finding | None:
    """Why no PyTorch 2 build with CUDA 12 or later has code for the GPU (Kepler: K80); None where one has."""
    version = capability(gpu)
    if version is None or version >= CUDA_12_LEAST:
        return None
    return about_options.RemovedBySoftware(compute_capability=gpu.compute_capability)


def software_changes(plan: values.Plan, gpu: values.GpuSpec) -> Iterator[Finding]:
    """What the user's environment needs to run there."""
    version = capability(gpu)
    if version is not None and CUDA_12_LEAST <= version < CUDA_13_LEAST:
        yield EditScript(what="install-for-cuda-12", name=gpu.architecture)
    if version is None and gpu.compute_capability:
        yield EditScript(what="install-for-vendor", name=gpu.vendor)
    if plan.offer is not None and plan.offer.architecture == "arm64":
        yield EditScript(what="install-aarch64")


# Below it the rounded factor would read "1.00 times".
_LEAST_RISE = 1.005
_RISKS = {
    values.Tier.LOCAL: about_options.Risk(of="none"),
    values.Tier.CLUSTER: about_options.Risk(of="wait"),
    values.Tier.CLOUD: about_options.Risk(of="capacity"),
}


def reasons_of(
    plan: values.Plan, workload: values.Workload, estimate: values.IterationEstimate
) -> Iterator[Finding]:
    """Why it fits or not, what feeds it, and which of its figures are unknown or assumed.

    The estimate is the workload's, fed by the plan's machine.
    """
    if plan.blocked is not None:
        yield plan.blocked
    if (why := why_unsupported(workload.gpu)) is not None:
        yield why
    yield from (note for note in estimate.assumptions if isinstance(note, about_options.RemovedByAttention))
    yield from workload.memory_notes
    yield from host_memory_notes(plan, estimate)
    note = input_note(estimate, vcpus_per_gpu(plan), names_gpu_time=True)
    yield from [] if note is None else [note]
    # What is known to hide, whatever it takes, is not worth a word.
    may_show = estimate.input_s and estimate.input_s.p90 > estimate.device_s.p50
    assumed = assumed_note(estimate.input) if may_show else None
    yield from [] if assumed is None else [assumed]
    yield from workload.scaling_notes
    if plan.offer is not None and plan.offer.source.startswith(DERIVED):
        yield about_options.PriceDerived(source=plan.offer.source)
    if plan.offer is not None and is_community_host(plan.offer.provider, plan.offer.region):
        yield about_options.CommunityHost(provider=plan.offer.provider)
    if plan.usd_per_h is None:
        yield about_options.Unknown(what="cost")
    yield from plan.notes
    if plan.wait_s is None:
        yield about_options.Unknown(what="wait")


def queue_removals(plan: values.Plan, train_p90_s: float) -> Iterator[Finding]:
    """Limits of its scheduler that the job is above: it asks for its p90, or longer where that is set."""
    if plan.queue_limits:
        time_s = max(plan.startup_s + train_p90_s, plan.walltime_s or 0.0)
        asked = Asked(num_gpus=plan.num_gpus, num_nodes=plan.num_nodes, time_s=time_s)
        yield from forbidding(plan.queue_limits, asked)


def changes_of(
    plan: values.Plan, workload: values.Workload, spot: SpotTerms, train_s: float
) -> Iterator[Finding]:
    """What to change in the script; ``train_s`` is without preemptions."""
    work = workload.script_work
    yield from work.change
    yield from software_changes(plan, workload.gpu)
    if plan.copied_s and not plan.kept_share:
        yield EditScript(what="use-nvme")
    yield from work.sharing
    if plan.num_nodes > 1:
        yield StartOnNodes(
            num_nodes=plan.num_nodes,
            gpus_per_node=plan.layout.gpus_per_node,
            is_rented=plan.offer is not None,
        )
    yield from work.tuning
    interval_h = spot.checkpoint_interval_h
    needed = is_spot(plan) and spot.preemptions_per_h > 0
    if not needed or interval_h is None or train_s <= interval_h * HOUR_S:
        return
    # How often to save, and the work for it in a script that does not resume.
    known, name = workload.script.checkpoints, PurePath(workload.script.name).name
    best_interval_s = best_checkpoint_interval_h(spot) * HOUR_S
    intervals = {"interval_s": interval_h * HOUR_S, "best_interval_s": best_interval_s}
    if known is None or known.use is values.CheckpointUse.RESUMES:
        yield SaveCheckpoints(**intervals, assumed_of=name if known is None else None)
    else:
        saves, saved_at = known.use is values.CheckpointUse.SAVES, next(iter(known.saves), None)
        yield AddCheckpoints(**intervals, script=name, saves=saves, saved_at=saved_at)


def restarts_of(plan: values.Plan, script: values.Script, spot: SpotTerms) -> Iterator[Finding]:
    """That a preemption starts the script again from zero, where it does not resume by itself."""
    known, preempted = script.checkpoints, is_spot(plan) and spot.preemptions_per_h > 0
    if preempted and spot.checkpoint_interval_h is None and known is not None:
        yield about_options.RestartsFromZero(
            script=PurePath(script.name).name, saves=known.use is not values.CheckpointUse.NONE
        )


def risk_of(plan: values.Plan, spot: SpotTerms, run_days: float = 0.0) -> Finding:
    """What can go wrong there, and where its rate comes from."""
    if not is_spot(plan):
        return _RISKS[plan.tier]
    rise = price_rise(plan, run_days)
    return about_options.Risk(
        of="preemption",
        num_nodes=plan.num_nodes,
        preemptions_per_h=spot.preemptions_per_h,
        times_of_one=times_of_one(spot.num_nodes),
        rate_source=spot.rate_source,
        price_rise=rise if rise >= _LEAST_RISE else None,
        recovery=spot.recovery,
        num_zones=plan.elsewhere.num_zones if plan.elsewhere and spot.recovery.moves else 0,
    )


# A plan whose expected makespan is more than this many times the undisturbed one is no plan.
HOPELESS_TIMES = 5.0


def refusal(
    plan: values.Plan,
    work_s: float,
    terms: SpotTerms,
    *,
    median_time_s: float,
    deadline_s: float | None,
    p_within_deadline: float | None,
) -> Finding | None:
    """Why preemptions make the plan hopeless; None where they do not.

    It is if the expected makespan exceeds five times the time on demand, or half of the draws never end;
    without checkpoints, also if no draw meets a deadline that the same machine would meet on demand. One that
    goes on on demand always ends.
    """
    if not is_spot(plan) or terms.work_ends_by_s is not None:
        return None
    work_h = work_s / HOUR_S
    hours = _expected_h(work_h, *_figures(terms))
    makespan_h, _ = hours
    saves = terms.checkpoint_interval_h is not None
    in_time = deadline_s is not None and plan.startup_s + work_s <= deadline_s
    too_late = not saves and in_time and p_within_deadline == 0
    ends = makespan_h <= HOPELESS_TIMES * work_h and math.isfinite(median_time_s)
    if ends and not too_late:
        return None
    return about_options.RemovedBySpot(
        training_h=makespan_h,
        cost_usd=_expected_usd(plan, *hours),
        checkpoint_interval_h=terms.checkpoint_interval_h,
        on_demand_h=work_h,
        best=_better(plan, work_h, terms, makespan_h),
    )


def _better(
    plan: values.Plan, work_h: float, terms: SpotTerms, makespan_h: float
) -> Mapping[str, float] | None:
    """What the best checkpoint interval would make of it, if it helps."""
    interval_h = best_checkpoint_interval_h(terms)
    if not 0 < interval_h < work_h:
        return None
    rate_per_h, reacquire_h, _, *costs_h = _figures(terms)
    hours = _expected_h(work_h, rate_per_h, reacquire_h, interval_h, *costs_h)
    if hours[0] >= makespan_h:
        return None
    usd = _expected_usd(plan, *hours)
    return {"checkpoint_interval_h": interval_h, "training_h": hours[0], "cost_usd": usd}


def _expected_usd(plan: values.Plan, makespan_h: float, billed_h: float) -> float:
    kept_s, run_s = (np.array([plan.startup_s + hours * HOUR_S]) for hours in (makespan_h, billed_h))
    return float(cost_usd(plan, run_s=run_s, kept_s=kept_s)[0])


def _figures(terms: SpotTerms) -> tuple[float, float, float | None, float, float]:
    cadence = (terms.checkpoint_interval_h, terms.checkpoint_h, terms.restart_h)
    return terms.preemptions_per_h, terms.reacquire_h, *cadence


@lru_cache(maxsize=1024)
def _expected_h(
    work_h: float,
    preemptions_per_h: float,
    reacquire_h: float,
    interval_h: float | None,
    checkpoint_h: float,
    restart_h: float,
) -> tuple[float, float]:
    """Hours of training and hours billed at the median rate; thousands of plans share a few."""
    cadence = SpotTerms(checkpoint_interval_h=interval_h, checkpoint_h=checkpoint_h, restart_h=restart_h)
    makespan_h, billed_h = makespan_and_billed_h(
        np.array([work_h]), cadence, rate_per_h=preemptions_per_h, reacquire_h=reacquire_h
    )
    return float(makespan_h[0]), float(billed_h[0])


# Nothing of the host's memory is recorded, so each part is a distribution that is judged, from memory,
# 2026-11-26. p10, p50 and p90 are added as if all were small or large together.

_SYSTEM_BYTES = values.Interval(p10=0.5e9, p50=1e9, p90=2e9)
# A Python with torch and the libraries of CUDA, for each GPU.
_PROCESS_BYTES = values.Interval(p10=1.5e9, p50=3e9, p90=5e9)
# Of a process that loads data: it begins as a copy of the training process and shares most of its pages.
_WORKER_BYTES = values.Interval(p10=0.1e9, p50=0.4e9, p90=1e9)
_UNKNOWN_WORKERS = values.Interval(p10=0, p50=2, p90=8)
# Weights are streamed to the GPU, made on the host first, or read there from a file beside that.
_COPIES_OF_WEIGHTS = values.Interval(p10=0, p50=1, p90=2)


def host_bytes(estimate: values.IterationEstimate) -> values.Interval | None:
    """What the processes of one node need, cached files aside; None where the weights are unknown."""
    if estimate.memory is None or values.MemoryPart.WEIGHTS not in estimate.memory.parts:
        return None
    num_workers = None if estimate.input is None else estimate.input.num_workers
    return _need(estimate.memory.parts[values.MemoryPart.WEIGHTS], num_workers, estimate.layout.gpus_per_node)


@lru_cache(1024)
def _need(weights_bytes: int, num_workers: int | None, gpus_per_node: int) -> values.Interval:
    """Thousands of machines share a few of them."""

    def at(name: str) -> float:
        workers = getattr(_UNKNOWN_WORKERS, name) if num_workers is None else num_workers
        each = getattr(_PROCESS_BYTES, name) + workers * getattr(_WORKER_BYTES, name)
        each += getattr(_COPIES_OF_WEIGHTS, name) * weights_bytes
        return float(getattr(_SYSTEM_BYTES, name) + gpus_per_node * each)

    return values.Interval(p10=at("p10"), p50=at("p50"), p90=at("p90"))


def host_memory_notes(plan: values.Plan, estimate: values.IterationEstimate) -> Iterator[Finding]:
    """Why the machine's memory is too small, or may be; nothing where either is unknown."""
    known, need = instance_of(plan), host_bytes(estimate)
    if need is None or known is None or known.memory_bytes is None:
        return
    fit = values.Fit.of(need, known.memory_bytes)
    if fit is values.Fit.NO:
        yield about_options.RemovedByHostMemory(needed_bytes=need.p50, available_bytes=known.memory_bytes)
    elif fit is values.Fit.LIKELY:
        yield about_options.MemoryTight(
            of="host", needed_bytes=need.p50, needed_p90_bytes=need.p90, available_bytes=known.memory_bytes
        )
