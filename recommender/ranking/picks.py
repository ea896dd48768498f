"""The named picks. Each is the least of a figure of its own, so that no other option changes which."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Job, Option, Pick, PickName
from recommender.ranking.safety import risk_key, safest, why_safest
from recommender.ranking.value import counted_usd, least_total, value_of_time, why_least


def picks_of(options: Sequence[Option], job: Job) -> tuple[Pick, ...]:
    """The best option at each thing; there must be one at least."""
    fast, cheap, safe = fastest(options), cheapest(options), safest(options)
    value = value_of_time(job)
    best = least_total(options, value)
    is_cost_known = cheap.plan.usd_per_h is not None
    named = (
        (PickName.CHEAPEST, cheap, finding(Code.CHEAPEST, is_cost_known=is_cost_known)),
        (PickName.FASTEST, fast, finding(Code.FASTEST)),
        (PickName.BEST_VALUE, best, why_least(best, value)),
        (PickName.SAFEST, safe, why_safest(safe)),
    )
    return tuple(Pick(name=name, plan_id=option.plan.id, reason=why) for name, option, why in named)


def recommended_of(picks: Sequence[Pick], job: Job) -> tuple[str, Finding]:
    """The plan to take, and by which rule: the pick that was asked for, else the best value."""
    wanted = job.pick or PickName.BEST_VALUE
    chosen = next(pick for pick in picks if pick.name is wanted)
    if job.pick is None:
        return chosen.plan_id, chosen.reason
    return chosen.plan_id, finding(Code.OBJECTIVE_OF_POLICY, reason=chosen.reason)


def cheapest(options: Sequence[Option]) -> Option:
    """The least median cost, a price that nobody quoted at its p90; of equal ones the faster."""
    return min(
        options,
        key=lambda o: (counted_usd(o, o.cost_usd.p50), o.time_s.p50, risk_key(o), o.plan.id),
    )


def fastest(options: Sequence[Option]) -> Option:
    """The least median time; of equal ones the cheaper."""
    return min(
        options,
        key=lambda o: (o.time_s.p50, counted_usd(o, o.cost_usd.p50), risk_key(o), o.plan.id),
    )
