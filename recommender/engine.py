"""``recommend(...)``: options for a job, ranked on a Pareto frontier of time and cost; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from advisor.core import limits
from advisor.core.errors import InputError, NoOfferError
from advisor.core.findings import Finding
from advisor.core.findings.about_answers import AssumedOfOptions, NothingToChooseFrom
from advisor.core.findings.about_estimates import Supposed
from advisor.core.findings.about_options import RateUnknown, RemovedByDeadline, Unknown, WaitAssumed
from advisor.core.findings.about_traces import EvaluationSeen, LengthUnknown
from advisor.core.values import AssumedWait, Job, Option, Plan, Recommendation, Script, Tier, Workload
from recommender.conditions import Conditions, Spent
from recommender.outcome.draws import make_draws
from recommender.outcome.evaluate import Judged
from recommender.ranking.checkpoint_ways import as_it_is, evaluate_ways, with_work
from recommender.ranking.choice import best_of, nearest_rows, rank, shortlist
from recommender.ranking.frontier import Nearest, nearest, with_more_vcpus

if TYPE_CHECKING:
    from recommender.policy.merge import Policy

# Warnings that the job does more than the recorded steps, for an unknown time.
_MORE_THAN_STEPS = {"between", "left-out", "rollouts"}

__all__ = ["Nearest", "check_job", "judge", "nearest", "recommend"]


def recommend(
    workloads: Sequence[Workload],
    plans: Sequence[Plan],
    job: Job,
    policy: Policy | None = None,
    *,
    rng: np.random.Generator,
    conditions: Conditions | None = None,
) -> Recommendation:
    """Evaluate every plan and rank the feasible ones; arguments and errors as of `judge`."""
    judged = judge(workloads, plans, job, policy, rng=rng, conditions=conditions)
    return _ranked(judged, workloads[0].script, job)


def judge(
    workloads: Sequence[Workload],
    plans: Sequence[Plan],
    job: Job,
    policy: Policy | None = None,
    *,
    rng: np.random.Generator,
    conditions: Conditions | None = None,
) -> list[Judged]:
    """Evaluate every plan, feasible or not, in their order; figures of one depend on no other.

    Args:
        workloads: of the script, one for each GPU and layout of the plans.
        job: what to do and under which limits.
        policy: rules of the organisation; what they remove stays among the options, with the rule.
        conditions: what is known beside the question; None for nothing.

    Raises:
        InputError: the job is not well formed, or the workloads lack what the plans need.
        NoOfferError: there is no plan at all.
        PolicyViolationError: the policy removes every plan.
    """
    check_job(job)
    known_layouts = {(workload.gpu.name, workload.layout) for workload in workloads}
    lacking = (plan for plan in plans if (plan.gpu, plan.layout) not in known_layouts)
    if missing := dict.fromkeys(f"{plan.num_gpus} x {plan.gpu}" for plan in lacking):
        raise InputError(
            f"workloads lacks {', '.join(missing)}:"
            " as_written(trace, gpus, job).workloads(plans) makes all that the plans need."
        )
    if len({plan.id for plan in plans}) < len(plans):
        raise InputError("two plans have the same id: leave one out.")
    if not plans:
        raise NoOfferError(
            "there is nothing to choose from: no local GPU, no cluster and no offer matches. Ask for more"
            " GPUs, providers, regions or markets.",
            finding=NothingToChooseFrom(),
        )
    known, draws = conditions or Conditions(), make_draws(rng)
    if policy is None:
        return evaluate_ways(workloads, plans, job, draws, known)
    from recommender.policy.judge import check_any_left, under_policy

    spent = known.spent or Spent(all_usd=0.0, project_usd=0.0)
    ruled = partial(under_policy, policy=policy, spent=spent)
    judged = evaluate_ways(workloads, plans, job, draws, known, ruled)
    check_any_left([item.option for item in judged])
    return judged


def _ranked(judged: Sequence[Judged], script: Script, job: Job) -> Recommendation:
    judged = with_more_vcpus(judged)
    late = [item.option for item in judged if item.option.removed_by == (RemovedByDeadline.code,)]
    is_whole = not any(
        isinstance(one, EvaluationSeen) and one.where in _MORE_THAN_STEPS for one in script.warnings
    )
    feasible = [item for item in judged if item.option.feasible]
    ranking = rank(feasible, job, late, script=script, is_whole=is_whole)
    by_id = {option.plan.id: option for option in ranking.options}
    options = tuple(by_id.get(item.option.plan.id, item.option) for item in judged)
    unchanged, worked_on = (
        best_of(found, job) if found else None for found in (as_it_is(judged, script), with_work(judged))
    )
    best_id = ranking.recommended
    return Recommendation(
        script=script,
        job=job,
        options=options,
        frontier=ranking.frontier,
        recommended=best_id,
        rule=ranking.rule,
        warnings=_warnings(script, options, job),
        picks=ranking.picks,
        summary=ranking.summary,
        as_it_is=unchanged,
        with_work=worked_on,
        shortlist=nearest_rows(options, job)
        if best_id is None
        else shortlist(options, ranking.picks, job, best_id=best_id, as_it_is=unchanged, with_work=worked_on),
    )


def check_job(job: Job, name_of: Callable[[str], str] = str) -> None:
    """Refuse what cannot be meant. Raises InputError: says which number is wrong and what is allowed."""
    epochs, iterations = name_of("epochs"), name_of("iterations")
    if job.epochs is not None and job.iterations is not None:
        raise InputError(f"both {epochs} and {iterations} were given: give one.")
    if job.epochs is None and job.iterations is None:
        raise InputError(f"how long does the job train? Give {epochs} N or {iterations} N.")
    for field in ("iterations", "iterations_per_epoch"):
        if (count := getattr(job, field)) is not None:
            limits.check_count(name_of(field), count, most=limits.MAX_ITERATIONS)
    allowed: dict[str, dict[str, float]] = {
        "epochs": {"above": 0, "most": limits.MAX_EPOCHS},
        "budget_usd": {"above": 0, "most": limits.MAX_USD},
        "deadline_s": {"above": 0, "most": limits.MAX_PLANNED_S},
        "value_of_time_usd_per_h": {"least": 0, "most": limits.MAX_USD_PER_H},
        "change_usd": {"least": 0, "most": limits.MAX_USD},
    }
    for field, bounds in allowed.items():
        if (value := getattr(job, field)) is not None:
            limits.check_number(name_of(field), value, **bounds)
    limits.check_number(name_of("confidence"), job.confidence, above=0)
    if not 0 < job.confidence < 1:
        raise InputError(f"{name_of('confidence')} must lie between 0 and 1, got {job.confidence:g}.")


def _warnings(script: Script, options: Sequence[Option], job: Job) -> tuple[Finding, ...]:
    has_length = job.iterations is not None or job.iterations_per_epoch is not None
    warnings = [
        warning for warning in script.warnings if not (has_length and isinstance(warning, LengthUnknown))
    ]
    if not job.split.is_none:
        warnings.append(Supposed(split=job.split.name))
    sharing = Unknown(what="sharing")
    if any(sharing in option.reasons for option in options):
        warnings.append(sharing)
    free = sorted({o.plan.provider for o in options if o.plan.usd_per_h is None})
    if free:
        warnings.append(Unknown(what="hourly-cost", names=free))
    assumed = [o for o in options if any(isinstance(note, WaitAssumed) for note in o.plan.notes)]
    if assumed:
        rented = sum(o.plan.offer is not None for o in options)
        warnings.append(AssumedOfOptions(what="cloud-wait", num_assumed=len(assumed), num_options=rented))
    num_unknown = sum(any(isinstance(note, RateUnknown) for note in o.plan.notes) for o in options)
    if num_unknown:
        warnings.append(AssumedOfOptions(what="rates", num_assumed=num_unknown, num_options=len(options)))
    own = [o.plan for o in options if o.plan.offer is None and o.plan.wait_s is None]
    if any(plan.tier is Tier.LOCAL for plan in own):
        warnings.append(Unknown(what="local-wait"))
    assumed_of = (o.plan for o in options if isinstance(o.plan.wait_s, AssumedWait))
    queued = sorted({plan.provider for plan in assumed_of})
    if queued:
        warnings.append(Unknown(what="cluster-wait", names=queued))
    return tuple(warnings)
