"""Feasible options -> frontier, ties, named picks and the one to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Job, Option, Pick, PickName
from recommender.outcome.evaluate import Judged
from recommender.ranking.choose import choose
from recommender.ranking.near import point_of, with_ties
from recommender.ranking.pareto import frontier, frontier_of_three
from recommender.ranking.safety import risk_ranks, safest, why_safest
from recommender.ranking.value import Valued, expected, least_total, wait_or_rent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """As in ``Recommendation``; ``options`` are the feasible ones, with what comparing them showed."""

    options: tuple[Option, ...] = ()
    frontier: tuple[str, ...] = ()
    recommended: str | None = None
    rule: Finding | None = None
    picks: tuple[Pick, ...] = ()


def rank(judged: Sequence[Judged], job: Job, pick: PickName | None = None) -> Ranking:
    """Compare feasible options with each other.

    The frontier is of median time and median cost; if risk counts, also of risk. The recommended option is
    the best value of the frontier of time and cost, or, if an hour has a value, the one of least expected
    cost and time together, or else the pick that a policy names.
    """
    if not judged:
        return Ranking()
    options = [item.option for item in judged]
    points = [point_of(option) for option in options]
    strict = frontier(points)
    kept = strict
    if job.risk_counts:
        risks = risk_ranks(options)
        kept = frontier_of_three([(*point, risk) for point, risk in zip(points, risks, strict=True)])
        strict = [i for i in strict if i in set(kept)]  # without the riskier of equal points
    best, rule = _best_value([options[i] for i in strict])
    picks = _picks(options, [options[i] for i in strict], best, rule)
    told = with_ties(judged, strict)
    if job.value_of_time_usd_per_h is not None:
        valued = [expected(item) for item in judged]
        told = _with_waits(told, valued, job.value_of_time_usd_per_h)
        best, rule = _by_value(valued, job.value_of_time_usd_per_h)
    elif pick is not None:
        chosen = next(found for found in picks if found.name is pick)
        best = next(option for option in told if option.plan.id == chosen.plan_id)
        rule = finding(Code.OBJECTIVE_OF_POLICY, reason=chosen.reason)
    return Ranking(
        options=tuple(told),
        frontier=tuple(options[i].plan.id for i in kept),
        recommended=best.plan.id,
        rule=rule if best.plan.usd_per_h is not None else finding(Code.COST_OF_PICK_UNKNOWN, rule=rule),
        picks=picks,
    )


def _best_value(strict: Sequence[Option]) -> tuple[Option, Finding]:
    chosen = choose(strict)
    assert chosen is not None, "what is feasible ends some day"  # noqa: S101
    return chosen


def _by_value(valued: Sequence[Valued], value_usd_per_h: float) -> tuple[Option, Finding]:
    best = least_total(valued, value_usd_per_h)
    return best.option, finding(
        Code.BEST_OF_TOTAL, value_usd_per_h=value_usd_per_h, cost_usd=best.cost_usd, time_s=best.time_s
    )


def _with_waits(options: Sequence[Option], valued: Sequence[Valued], value_usd_per_h: float) -> list[Option]:
    advice = wait_or_rent(valued, value_usd_per_h)
    return [replace(option, reasons=(*advice.get(option.plan.id, ()), *option.reasons)) for option in options]


def _picks(
    options: Sequence[Option], strict: Sequence[Option], best: Option, rule: Finding
) -> tuple[Pick, ...]:
    """The named picks. The frontier of time and cost begins with the fastest and ends with the cheapest."""
    fastest, cheapest = strict[0], strict[-1]
    safe = safest(options)
    is_cost_known = cheapest.plan.usd_per_h is not None
    named = (
        (PickName.CHEAPEST, cheapest, finding(Code.CHEAPEST, is_cost_known=is_cost_known)),
        (PickName.FASTEST, fastest, finding(Code.FASTEST)),
        (PickName.BEST_VALUE, best, rule),
        (PickName.SAFEST, safe, why_safest(safe)),
    )
    return tuple(Pick(name=name, plan_id=option.plan.id, reason=why) for name, option, why in named)
