"""The named picks. Each is the least of a figure of its own, so that no other option changes which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Job, Option, Pick, PickName
from recommender.ranking.safety import risk_key, safest, why_safest
from recommender.ranking.value import least_total, why_least, worth_for


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
    return chosen.plan_id, finding(Code.OBJECTIVE_OF_POLICY, reason=chosen.reason)


def picked_by(name: PickName, options: Sequence[Option], job: Job) -> Option:
    """The option that is the best at one thing."""
    match name:
        case PickName.CHEAPEST:
            return cheapest(options)
        case PickName.FASTEST:
            return fastest(options)
        case PickName.BEST_VALUE:
            return least_total(options, worth_for(job))
        case PickName.SAFEST:
            return safest(options)
        case _:
            assert_never(name)


def _why(name: PickName, option: Option, options: Sequence[Option], job: Job) -> Finding:
    match name:
        case PickName.CHEAPEST:
            return finding(
                Code.CHEAPEST,
                is_cost_known=option.plan.usd_per_h is not None,
                is_guess_below=is_guess_below(option, options),
            )
        case PickName.FASTEST:
            return finding(Code.FASTEST)
        case PickName.BEST_VALUE:
            return why_least(option, worth_for(job))
        case PickName.SAFEST:
            return why_safest(option)
        case _:
            assert_never(name)


def cheapest(options: Sequence[Option]) -> Option:
    """The least median cost, a price that nobody quoted at its p90; of equal ones the faster."""
    return min(
        options,
        key=lambda o: (o.counted_usd, o.time_s.p50, risk_key(o), o.plan.id),
    )


def is_guess_below(option: Option, options: Sequence[Option]) -> bool:
    """Whether the median of a price that nobody quoted, which counts at its p90, is below the cheapest."""
    return any(other.cost_usd.p50 < option.cost_usd.p50 for other in options)


def fastest(options: Sequence[Option]) -> Option:
    """The least median time; of equal ones the cheaper."""
    return min(
        options,
        key=lambda o: (o.time_s.p50, o.counted_usd, risk_key(o), o.plan.id),
    )
