"""How sure an option is to go as predicted, as something that can be ordered."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Option, Quantiles
from recommender.outcome.spot import is_spot

RiskKey = tuple[float, bool, float]


def risk_key(option: Option) -> RiskKey:
    """Less is safer: odds of missing a limit, then whether it can be preempted, then the spread p90 / p50.

    The odds are those of the limit that is likelier to be missed, 0 without limits, to a hundredth: less is
    luck of the draws. The spread is the greater of those of time and cost, to a tenth, which is about how
    well intervals are known.
    """
    odds = [p for p in (option.p_within_budget, option.p_within_deadline) if p is not None]
    spread = max(_spread(option.time_s), _spread(option.cost_usd))
    return round(1 - min(odds, default=1.0), 2), is_spot(option.plan), round(spread, 1)


def _spread(quantiles: Quantiles) -> float:
    return quantiles.p90 / quantiles.p50 if quantiles.p50 else 1.0


def risk_ranks(options: Sequence[Option]) -> list[int]:
    """0 for the least risk, equal risks alike."""
    keys = [risk_key(option) for option in options]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    return [place[key] for key in keys]


def safest(options: Sequence[Option]) -> Option:
    """The one of least risk; of equal ones that with the least cost at p90."""
    return min(options, key=lambda option: (risk_key(option), option.cost_usd.p90, option.plan.id))


def why_safest(option: Option) -> Finding:
    """Why it is the safest."""
    missed, preempted, spread = risk_key(option)
    limits = {"budget": option.p_within_budget, "deadline": option.p_within_deadline}
    asked = [name for name, p in limits.items() if p is not None]
    return finding(
        Code.SAFEST, limits=asked, p_met=1 - missed, is_preemptible=preempted, p90_over_median=spread
    )
