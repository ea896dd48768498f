"""How sure an option is to go well, as something that can be ordered."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Option
from recommender.outcome.spot import is_spot

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
    return finding(
        Code.SAFEST,
        limits=asked,
        p_met=1 - missed,
        is_preemptible=preempted,
        cost_p90_usd=cost_usd,
        is_cost_known=option.plan.usd_per_h is not None,
    )
