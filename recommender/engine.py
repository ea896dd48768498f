"""``recommend(...)``: options for a job, ranked on a Pareto frontier of time and cost; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.core.arguments import check_count, check_each, check_kind, check_number
from advisor.core.errors import InputError, NoOfferError
from advisor.core.findings import Code, Finding, finding
from advisor.core.limits import MAX_EPOCHS, MAX_ITERATIONS, MAX_PLANNED_S, MAX_USD, MAX_USD_PER_H
from advisor.core.values import (
    GpuSpec,
    IterationEstimate,
    Job,
    Option,
    Plan,
    Recommendation,
    Tier,
    Trace,
)
from advisor.pricing.spot import Interruptions
from recommender.outcome.draws import make_draws
from recommender.outcome.estimates import check_gpus
from recommender.outcome.evaluate import Judged, evaluate_all
from recommender.outcome.known import EstimateKey
from recommender.outcome.more_vcpus import with_more_vcpus
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, terms_of_plans
from recommender.ranking.nearest import Nearest, nearest
from recommender.ranking.rank import rank

if TYPE_CHECKING:
    from recommender.policy import Policy, Spent

# Warnings that ask for the length of an epoch or of the job: nothing to say where that was given.
_ASKS_LENGTH = {Code.BATCH_SIZE_UNKNOWN, Code.DATA_WITHOUT_LENGTH, Code.NO_BATCH_LOADED, Code.NO_DATA_LOADER}
# Warnings that the job does more than the recorded steps, for a time that nobody knows.
_MORE_THAN_STEPS = {Code.EVALUATION_BETWEEN, Code.EVALUATION_LEFT_OUT, Code.ROLLOUTS_LEFT_OUT}

__all__ = ["Nearest", "check_job", "judge", "nearest", "ranked", "recommend"]


def recommend(
    trace: Trace,
    estimates: Mapping[EstimateKey, IterationEstimate],
    gpus: Mapping[str, GpuSpec],
    plans: Sequence[Plan],
    job: Job,
    *,
    rng: np.random.Generator,
    spot: SpotTerms | None = None,
    interruptions: Mapping[tuple[str, str], Interruptions] | None = None,
    policy: Policy | None = None,
    spent: Spent | None = None,
) -> Recommendation:
    """Evaluate every plan and rank the feasible ones; arguments and errors as of `judge`."""
    judged = judge(
        trace,
        estimates,
        gpus,
        plans,
        job,
        rng=rng,
        spot=spot,
        interruptions=interruptions,
        policy=policy,
        spent=spent,
    )
    return ranked(judged, trace, job)


def judge(
    trace: Trace,
    estimates: Mapping[EstimateKey, IterationEstimate],
    gpus: Mapping[str, GpuSpec],
    plans: Sequence[Plan],
    job: Job,
    *,
    rng: np.random.Generator,
    spot: SpotTerms | None = None,
    interruptions: Mapping[tuple[str, str], Interruptions] | None = None,
    policy: Policy | None = None,
    spent: Spent | None = None,
) -> list[Judged]:
    """Evaluate every plan, feasible or not, in their order; figures of one depend on no other.

    Args:
        trace: the script.
        estimates: by (GPU name, layout); one for each that occurs in ``plans``.
        gpus: the catalog entries of those GPUs.
        plans: what could be rented or used.
        job: what to do and under which limits.
        rng: draws are reproducible from its seed.
        spot: how spot machines behave; if None, as their classes in availability traces did.
        interruptions: by instance type and region: floors of an assumed rate of preemptions. None where the
            rate is configured.
        policy: rules of the organisation; what they remove stays among the options, with the rule.
        spent: this month's spending, for monthly limits; None where no rule asks.

    Raises:
        InputError: the job is not well formed or its length unknown; an argument is of another kind, or
            lacks what the plans need.
        NoOfferError: there is no plan at all.
        PolicyViolationError: the policy removes every plan.
    """
    check_job(job)
    _check_arguments(trace, estimates, gpus, plans, rng)
    check_kind("spot", spot, SpotTerms | None, "such as SpotTerms(preemptions_per_h=0.1)")
    check_kind("interruptions", interruptions, Mapping | None, "None will do")
    if not plans:
        raise NoOfferError(
            "there is nothing to choose from: no local GPU, no cluster and no offer matches. Ask for more"
            " GPUs, providers, regions or markets.",
            finding=finding(Code.NOTHING_TO_CHOOSE_FROM),
        )
    terms = spot or ASSUMED_TERMS
    terms_of, draws = terms_of_plans(terms, interruptions), make_draws(rng)
    judged = list(evaluate_all(plans, estimates, gpus, trace, job, draws, terms_of))
    return judged if policy is None else _under(policy, judged, spent, terms)


def ranked(judged: Sequence[Judged], trace: Trace, job: Job) -> Recommendation:
    """The options of judged plans, the feasible ones ranked."""
    judged = with_more_vcpus(judged)
    late = [item.option for item in judged if item.option.removed_by == (Code.DEADLINE,)]
    is_whole = _MORE_THAN_STEPS.isdisjoint(warning.code for warning in trace.warnings)
    feasible = [item for item in judged if item.option.feasible]
    ranking = rank(feasible, job, late, is_whole=is_whole)
    by_id = {option.plan.id: option for option in ranking.options}
    options = tuple(by_id.get(item.option.plan.id, item.option) for item in judged)
    return Recommendation(
        job=job,
        options=options,
        frontier=ranking.frontier,
        recommended=ranking.recommended,
        rule=ranking.rule,
        warnings=_warnings(trace, options, job),
        picks=ranking.picks,
        summary=ranking.summary,
    )


def _check_arguments(
    trace: Trace,
    estimates: Mapping[EstimateKey, IterationEstimate],
    gpus: Mapping[str, GpuSpec],
    plans: Sequence[Plan],
    rng: np.random.Generator,
) -> None:
    check_kind("trace", trace, Trace, "profile() makes one, trace_io.read_trace() reads one")
    check_each("plans", plans, Plan, "plans_of_offers() and plans_of_machine() make them")
    check_gpus(plans, gpus)
    check_kind("estimates", estimates, Mapping, "estimates_for(trace, plans, gpus) makes them")
    missing = {
        f"{plan.num_gpus} x {plan.gpu}": None for plan in plans if (plan.gpu, plan.layout) not in estimates
    }
    if missing:
        raise InputError(
            f"estimates lacks {', '.join(missing)}:"
            " estimates_for(trace, plans, gpus) makes all that the plans need."
        )
    if len({plan.id for plan in plans}) < len(plans):
        raise InputError("two plans have one id, and options are told apart by it: leave one out.")
    check_kind("rng", rng, np.random.Generator, "numpy.random.default_rng(0) makes one")


def _under(policy: Policy, judged: Sequence[Judged], spent: Spent | None, terms: SpotTerms) -> list[Judged]:
    from recommender.policy import Policy as Rules
    from recommender.policy import Spent as Known
    from recommender.policy.apply import under_policy

    check_kind("policy", policy, Rules, "read_policies([path]) reads one")
    check_kind("spent", spent, Known | None, "such as Spent(all_usd=0, project_usd=0)")
    known = spent or Known(all_usd=0.0, project_usd=0.0)
    options = under_policy([item.option for item in judged], policy, known, terms)
    return [replace(item, option=option) for item, option in zip(judged, options, strict=True)]


def check_job(job: Job, name_of: Callable[[str], str] = str) -> None:
    """Refuse what cannot be meant.

    Args:
        job: what was asked for.
        name_of: what the caller calls a field of it.

    Raises:
        InputError: says which number is wrong and what is allowed.
    """
    check_kind("job", job, Job, "such as Job(epochs=90)")
    epochs, iterations = name_of("epochs"), name_of("iterations")
    if job.epochs is not None and job.iterations is not None:
        raise InputError(f"both {epochs} and {iterations} were given: give one.")
    if job.epochs is None and job.iterations is None:
        raise InputError(f"how long does the job train? Give {epochs} N or {iterations} N.")
    for field in ("iterations", "iterations_per_epoch"):
        if (count := getattr(job, field)) is not None:
            check_count(name_of(field), count, most=MAX_ITERATIONS)
    most = {
        "epochs": MAX_EPOCHS,
        "budget_usd": MAX_USD,
        "deadline_s": MAX_PLANNED_S,
        "value_of_time_usd_per_h": MAX_USD_PER_H,
    }
    for field, limit in most.items():
        if (value := getattr(job, field)) is not None:
            check_number(name_of(field), value, above=0, most=limit)
    if job.change_usd is not None:
        check_number(name_of("change_usd"), job.change_usd, least=0, most=MAX_USD)
    check_number(name_of("confidence"), job.confidence, above=0)
    if not 0 < job.confidence < 1:
        raise InputError(f"{name_of('confidence')} must lie between 0 and 1, got {job.confidence:g}.")


def _warnings(trace: Trace, options: Sequence[Option], job: Job) -> tuple[Finding, ...]:
    has_length = job.iterations is not None or job.iterations_per_epoch is not None
    warnings = [warning for warning in trace.warnings if not (has_length and warning.code in _ASKS_LENGTH)]
    if not job.split.is_none:
        warnings.append(finding(Code.SUPPOSED, split=job.split.name))
    if any(reason.code is Code.SHARING_UNKNOWN for option in options for reason in option.reasons):
        warnings.append(finding(Code.SHARING_UNKNOWN))
    free = sorted({o.plan.provider for o in options if o.plan.usd_per_h is None})
    if free:
        warnings.append(finding(Code.HOURLY_COST_UNKNOWN, providers=free))
    assumed = [o for o in options if any(note.code is Code.WAIT_ASSUMED for note in o.plan.notes)]
    if assumed:
        rented = sum(o.plan.offer is not None for o in options)
        warnings.append(finding(Code.CLOUD_WAIT_ASSUMED, num_assumed=len(assumed), num_rented=rented))
    num_unknown = sum(any(note.code is Code.RATE_UNKNOWN for note in o.plan.notes) for o in options)
    if num_unknown:
        warnings.append(finding(Code.RATES_UNKNOWN, num_unknown=num_unknown, num_options=len(options)))
    own = [o.plan for o in options if o.plan.offer is None and o.plan.wait_s is None]
    if any(plan.tier is Tier.LOCAL for plan in own):
        warnings.append(finding(Code.LOCAL_GPUS_BUSY))
    queued = sorted({plan.provider for plan in own if plan.tier is not Tier.LOCAL})
    if queued:
        warnings.append(finding(Code.CLUSTER_WAIT_UNKNOWN, clusters=queued))
    return tuple(warnings)
