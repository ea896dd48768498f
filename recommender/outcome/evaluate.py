"""Plans + IterationEstimates -> Options: time, cost, odds and risk of one job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from advisor.core.errors import InputError
from advisor.core.findings import Code, Finding, finding
from advisor.core.limits import MAX_ITERATIONS
from advisor.core.values import GpuSpec, IterationEstimate, Job, Option, Plan, Quantiles, Trace
from advisor.predict.loading import fed
from recommender.outcome.bill import TOLERANCE, breakdown_usd
from recommender.outcome.draws import Array, Draws, quantiles_of_rows
from recommender.outcome.outcomes import Outcome, outcome_of, work_of
from recommender.outcome.reasons import changes_of, reasons_of, risk_of
from recommender.outcome.refusal import refusal
from recommender.outcome.spot import SpotTerms
from recommender.outcome.vcpus import vcpus_per_gpu

EstimateKey = tuple[str, int]

# Plans whose draws are worked out together: enough to hide the cost of a call, few enough for the cache.
CHUNK = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An option with the draws [n] behind its figures."""

    option: Option
    train_s: Array
    time_s: Array
    cost_usd: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """Of one plan: quantiles of its draws, and odds of the limits that are set."""

    train_s: Quantiles
    time_s: Quantiles
    cost_usd: Quantiles
    steady_usd: Quantiles
    odds: Mapping[str, float | None]


def num_iterations(trace: Trace, job: Job, num_gpus: int) -> int:
    """Optimizer steps on ``num_gpus`` with the batch per GPU held (weak scaling).

    Raises:
        InputError: epochs are asked for and nobody knows how many iterations one has, or they are too many.
    """
    if job.iterations is not None:
        return math.ceil(job.iterations / num_gpus)
    per_epoch = job.iterations_per_epoch or trace.iterations_per_epoch
    if per_epoch is None or job.epochs is None:
        raise InputError(
            f"how many iterations an epoch of {trace.script!r} has is unknown: set iterations_per_epoch, or"
            " iterations instead of epochs.",
            finding=finding(
                Code.EPOCH_LENGTH_UNKNOWN,
                script=trace.script,
                is_of_profiler=trace.backend == "kineto",
                has_loader=trace.num_workers is not None,
            ),
        )
    # Rounded first: 100 * 0.07 is 7.000000000000001 in floating point, and 7 iterations all the same.
    found = math.ceil(round(math.ceil(per_epoch / num_gpus) * job.epochs, 6))
    if found > MAX_ITERATIONS:
        raise InputError(
            f"{job.epochs:,g} epochs of {per_epoch:,} iterations are more than {MAX_ITERATIONS:,} iterations:"
            " set fewer epochs, or iterations_per_epoch where the epoch has no real end.",
            finding=finding(
                Code.TOO_MANY_EPOCHS,
                epochs=job.epochs,
                iterations_per_epoch=per_epoch,
                most_iterations=MAX_ITERATIONS,
            ),
        )
    return found


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
    estimates, gpus = {(plan.gpu, plan.num_gpus): estimate}, {plan.gpu: gpu}
    (judged,) = evaluate_all([plan], estimates, gpus, trace, job, draws, lambda _: spot)
    return judged.option


def evaluate_all(
    plans: Sequence[Plan],
    estimates: Mapping[EstimateKey, IterationEstimate],
    gpus: Mapping[str, GpuSpec],
    trace: Trace,
    job: Job,
    draws: Draws,
    terms_of: Callable[[Plan], SpotTerms],
) -> Iterator[Judged]:
    """What each plan means for the job; plans with the same GPUs share their draws.

    Raises:
        InputError: the number of iterations is unknown.
    """

    @cache
    def fed_there(gpu: str, num_gpus: int, vcpus: float) -> IterationEstimate:
        return fed(estimates[gpu, num_gpus], vcpus)

    @cache
    def work_s(gpu: str, num_gpus: int, vcpus: float) -> Array:
        iterations = num_iterations(trace, job, num_gpus)
        return work_of(fed_there(gpu, num_gpus, vcpus), iterations, draws)

    for start in range(0, len(plans), CHUNK):
        chunk = plans[start : start + CHUNK]
        terms = [terms_of(plan) for plan in chunk]
        machines = [(plan.gpu, plan.num_gpus, vcpus_per_gpu(plan)) for plan in chunk]
        outcome = outcome_of(chunk, [work_s(*machine) for machine in machines], terms, draws)
        for i, figures in enumerate(_figures(outcome, job)):
            plan = chunk[i]
            estimate = fed_there(*machines[i])
            option = _option(plan, estimate, gpus[plan.gpu], trace, job, figures, terms[i])
            yield Judged(
                option=option,
                train_s=outcome.train_s[i],
                time_s=outcome.time_s[i],
                cost_usd=outcome.cost_usd[i],
            )


def _figures(outcome: Outcome, job: Job) -> Iterator[_Figures]:
    drawn = (outcome.train_s, outcome.time_s, outcome.cost_usd, outcome.steady_usd)
    quantiles = map(quantiles_of_rows, drawn)
    in_budget = _odds(outcome.cost_usd, job.budget_usd)
    in_time = _odds(outcome.time_s, job.deadline_s)
    for train_s, time_s, usd, steady, budget, deadline in zip(*quantiles, in_budget, in_time, strict=True):
        odds = {"budget": budget, "deadline": deadline}
        yield _Figures(train_s=train_s, time_s=time_s, cost_usd=usd, steady_usd=steady, odds=odds)


def _odds(values: Array, limit: float | None) -> Sequence[float | None]:
    if limit is None:
        return [None] * len(values)
    odds: list[float | None] = np.mean(values <= limit * (1 + TOLERANCE), axis=1).tolist()
    return odds


def _option(
    plan: Plan,
    estimate: IterationEstimate,
    gpu: GpuSpec,
    trace: Trace,
    job: Job,
    figures: _Figures,
    terms: SpotTerms,
) -> Option:
    iterations = num_iterations(trace, job, plan.num_gpus)
    work_s, usd = iterations * estimate.iteration_s.p50, figures.cost_usd.p50
    return Option(
        plan=plan,
        estimate=estimate,
        iterations=iterations,
        wait_s=plan.wait_s,
        train_s=figures.train_s,
        time_s=figures.time_s,
        cost_usd=figures.cost_usd,
        cost_breakdown_usd=breakdown_usd(plan, usd, work_s, usd - figures.steady_usd.p50),
        p_within_budget=figures.odds["budget"],
        p_within_deadline=figures.odds["deadline"],
        risk=risk_of(plan, terms),
        script_changes=tuple(changes_of(plan, gpu, trace, terms, work_s)),
        reasons=(
            *_refused(plan, work_s, terms, job, figures),
            *_misses(job, figures),
            *reasons_of(plan, estimate, gpu, trace),
        ),
    )


def _refused(
    plan: Plan, work_s: float, terms: SpotTerms, job: Job, figures: _Figures
) -> tuple[()] | tuple[Finding]:
    refused = refusal(
        plan,
        work_s,
        terms,
        median_time_s=figures.time_s.p50,
        deadline_s=job.deadline_s,
        p_within_deadline=figures.odds["deadline"],
    )
    return () if refused is None else (refused,)


def _misses(job: Job, figures: _Figures) -> Iterator[Finding]:
    budget, deadline = figures.odds["budget"], figures.odds["deadline"]
    if job.budget_usd is not None and budget is not None and budget < job.confidence:
        yield finding(Code.BUDGET, cost_usd=figures.cost_usd.p50, budget_usd=job.budget_usd, p=budget)
    if job.deadline_s is not None and deadline is not None and deadline < job.confidence:
        yield finding(Code.DEADLINE, time_s=figures.time_s.p50, deadline_s=job.deadline_s, p=deadline)
