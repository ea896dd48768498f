"""Feasible options -> frontier, ties, named picks, the one to take, and which get a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from advisor.core.findings import Finding
from advisor.core.findings.about_answers import (
    Cheapest,
    CostOfPickUnknown,
    Fastest,
    ObjectiveOfPolicy,
    Safest,
)
from advisor.core.values import Job, Option, Pick, PickName, Script
from recommender.outcome.evaluate import Judged
from recommender.outcome.spot import is_spot
from recommender.ranking.neighbours import point_of, with_folded, with_ties
from recommender.ranking.pareto import frontier, frontier_of_three
from recommender.ranking.value import Worth, change_usd, least_total, wait_or_rent, why_least, worth_for
from recommender.ranking.what_tips import by_checkpoints, summary_of

# --- How sure an option is to go well, as something that can be ordered ----------------------------------


RiskKey = tuple[float, bool, float]


def risk_key(option: Option) -> RiskKey:
    """Less is safer: odds of missing a limit, then whether it can be preempted, then the cost at p90.

    The odds are those of the limit that is likelier to be missed, 0 without limits, to a hundredth: less is
    luck of the draws.
    """
    odds = [p for p in (option.p_within_budget, option.p_within_deadline) if p is not None]
    return round(1 - min(odds, default=1.0), 2), is_spot(option.plan), option.cost_usd.p90


def risk_ranks(options: Sequence[Option]) -> list[int]:
    """0 for the least risk, equal risks alike."""
    keys = [risk_key(option) for option in options]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    return [place[key] for key in keys]


def safest(options: Sequence[Option]) -> Option:
    """The one of least risk; of equal ones the faster at p90."""
    return min(options, key=lambda option: (risk_key(option), option.time_s.p90, option.plan.id))


def why_safest(option: Option) -> Finding:
    """Why it is the safest."""
    missed, preempted, cost_usd = risk_key(option)
    limits = {"budget": option.p_within_budget, "deadline": option.p_within_deadline}
    asked = [name for name, p in limits.items() if p is not None]
    return Safest(
        limits=asked,
        p_met=1 - missed,
        is_preemptible=preempted,
        cost_p90_usd=cost_usd,
        is_cost_known=option.plan.usd_per_h is not None,
    )


# The named picks. Each is the least of a figure of its own, so that no other option changes which


def picks_of(options: Sequence[Option], job: Job) -> tuple[Pick, ...]:
    """The best option at each thing; there must be one at least."""
    picked = ((name, picked_by(name, options, job)) for name in PickName)
    return tuple(
        Pick(name=name, plan_id=option.plan.id, reason=_why(name, option, options, job))
        for name, option in picked
    )


def best_of(options: Sequence[Option], job: Job) -> Option:
    """The one to take: the pick that was asked for, else the best value."""
    return picked_by(job.pick or PickName.BEST_VALUE, options, job)


def recommended_of(picks: Sequence[Pick], job: Job) -> tuple[str, Finding]:
    """The same of the picks: the plan, and why it is the one to take."""
    wanted = job.pick or PickName.BEST_VALUE
    chosen = next(pick for pick in picks if pick.name is wanted)
    if job.pick is None:
        return chosen.plan_id, chosen.reason
    return chosen.plan_id, ObjectiveOfPolicy(reason=chosen.reason)


def picked_by(name: PickName, options: Sequence[Option], job: Job) -> Option:
    """The option that is the best at one thing."""
    match name:
        case PickName.CHEAPEST:
            return cheapest(options, worth_for(job))
        case PickName.FASTEST:
            return fastest(options)
        case PickName.BEST_VALUE:
            worth = worth_for(job)
            return least_total(options, worth) if worth.hour_usd else cheapest(options, worth)
        case PickName.SAFEST:
            return safest(options)
        case _:
            assert_never(name)


def _why(name: PickName, option: Option, options: Sequence[Option], job: Job) -> Finding:
    match name:
        case PickName.CHEAPEST:
            return Cheapest(
                is_cost_known=option.plan.usd_per_h is not None,
                is_guess_below=is_guess_below(option, options, worth_for(job)),
                is_rent_below=any(other.counted_usd < option.counted_usd for other in options),
                work=list(option.work),
                change_usd=change_usd(option, worth_for(job)),
            )
        case PickName.FASTEST:
            return Fastest(work=list(option.work))
        case PickName.BEST_VALUE:
            worth = worth_for(job)
            if not worth.hour_usd:
                return _why(PickName.CHEAPEST, option, options, job)
            return why_least(option, worth)
        case PickName.SAFEST:
            return why_safest(option)
        case _:
            assert_never(name)


def cheapest(options: Sequence[Option], worth: Worth) -> Option:
    """The least median cost and work, a price that nobody quoted at its p90; of equal ones the faster."""
    return min(
        options,
        key=lambda o: (o.counted_usd + change_usd(o, worth), o.time_s.p50, risk_key(o), o.plan.id),
    )


def is_guess_below(option: Option, options: Sequence[Option], worth: Worth) -> bool:
    """Whether the median of a price that nobody quoted, which counts at its p90, is below the cheapest."""
    least_usd = option.cost_usd.p50 + change_usd(option, worth)
    return any(other.cost_usd.p50 + change_usd(other, worth) < least_usd for other in options)


def fastest(options: Sequence[Option]) -> Option:
    """The least median time; of equal ones the cheaper."""
    return min(
        options,
        key=lambda o: (o.time_s.p50, o.counted_usd, risk_key(o), o.plan.id),
    )


# --- Feasible options -> frontier, ties, named picks, the one to take, and which get a row ---------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """As in ``Recommendation``; ``options`` are the feasible ones, with what comparing them showed."""

    options: tuple[Option, ...] = ()
    frontier: tuple[str, ...] = ()
    recommended: str | None = None
    rule: Finding | None = None
    picks: tuple[Pick, ...] = ()
    summary: tuple[Finding, ...] = ()


def rank(
    judged: Sequence[Judged],
    job: Job,
    late: Sequence[Option] = (),
    *,
    script: Script,
    is_whole: bool = True,
) -> Ranking:
    """Compare feasible options with each other.

    The frontier is of median time and median cost; if risk counts, also of risk. It decides nothing: the
    picks do, each by figures of its option alone.

    Args:
        judged: feasible ones.
        job: with its limits.
        late: options that nothing but the deadline removes.
        script: that runs there.
        is_whole: False where the job does more than the steps that were profiled.
    """
    if not judged:
        return Ranking()
    options = [item.option for item in judged]
    kept, strict = _frontiers(options, risk_counts=job.risk_counts)
    picks = picks_of(options, job)
    best_id, rule = recommended_of(picks, job)
    worth = worth_for(job)
    compared = with_folded(_with_waits(with_ties(judged, strict), worth), best_id, worth)
    best = next(option for option in compared if option.plan.id == best_id)
    return Ranking(
        options=tuple(compared),
        frontier=tuple(options[i].plan.id for i in kept),
        recommended=best_id,
        rule=rule if best.plan.usd_per_h is not None else CostOfPickUnknown(rule=rule),
        picks=picks,
        summary=summary_of(
            compared,
            best,
            job,
            late,
            script=script,
            tips=by_checkpoints(judged, best, job, script),
            is_whole=is_whole,
        ),
    )


def _frontiers(options: Sequence[Option], *, risk_counts: bool) -> tuple[list[int], list[int]]:
    """Indices of the frontier, and of that of time and cost alone."""
    points = [point_of(option) for option in options]
    strict = frontier(points)
    if not risk_counts:
        return strict, strict
    risks = risk_ranks(options)
    kept = frontier_of_three([(*point, risk) for point, risk in zip(points, risks, strict=True)])
    return kept, sorted(set(strict) & set(kept), key=strict.index)  # without the riskier of equal points


def _with_waits(options: Sequence[Option], worth: Worth) -> list[Option]:
    advice = wait_or_rent(options, worth)
    return [
        replace(option, reasons=(*advice[option.plan.id], *option.reasons))
        if option.plan.id in advice
        else option
        for option in options
    ]
