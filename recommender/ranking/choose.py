"""Which option of the frontier to take, and what came nearest where none is feasible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Job, Option
from recommender.ranking.pareto import Point, knee

NEGLIGIBLE_SAVING = 0.05


def _cost_p50(option: Option) -> float:
    return option.cost_usd.p50


def _time_p50(option: Option) -> float:
    return option.time_s.p50


# What only asks for more money or time, with what comes nearest to it.
LIMITS = {Code.BUDGET: _cost_p50, Code.DEADLINE: _time_p50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """An option that misses, and by how much; 0 where it does not."""

    option: Option
    over_budget_usd: float
    late_s: float


def choose(frontier: Sequence[Option]) -> tuple[Option, Finding] | None:
    """The option to take and the rule that chose it; None for an empty frontier.

    What is hardly faster than something cheaper is left out. The knee of the rest gives the best value. A
    frontier without one (fewer than four options, or a straight line) is judged by the least product of
    time and cost.
    """
    if not frontier:
        return None
    if len(frontier) == 1:
        return frontier[0], finding(Code.ONLY_ONE)
    frontier = _worth_their_price(frontier)
    if len(frontier) == 1:
        return frontier[0], finding(Code.CHEAPEST_OF_EQUALS, least_saving_share=NEGLIGIBLE_SAVING)
    points = _positive([(o.time_s.p50, o.counted_usd) for o in frontier])
    best = knee(points)
    if best is not None:
        return frontier[best], finding(Code.BEST_AT_KNEE)
    least = min(range(len(points)), key=lambda i: (points[i][0] * points[i][1], points[i][0]))
    return frontier[least], finding(Code.BEST_OF_PRODUCT)


def _worth_their_price(frontier: Sequence[Option]) -> list[Option]:
    """Without options that save less than 5 % of the time of a cheaper one: intervals are wider than that."""
    kept: list[Option] = []
    for option in sorted(frontier, key=lambda o: (o.counted_usd, o.time_s.p50)):
        if not kept or option.time_s.p50 <= (1 - NEGLIGIBLE_SAVING) * kept[-1].time_s.p50:
            kept.append(option)
    return kept


def _positive(points: Sequence[Point]) -> list[Point]:
    """What is free, or of unknown cost, counts a tenth of the cheapest: zero would win whatever it takes."""
    least = min((cost for _, cost in points if cost > 0), default=1.0)
    return [(time, cost if cost > 0 else least / 10) for time, cost in points]


def nearest(options: Sequence[Option], job: Job) -> tuple[Nearest, ...]:
    """For each limit that is set: the best of those that meet all the others, or else of all.

    What fails for another reason (memory, sharding, software) never comes near.
    """
    fitting = [o for o in options if o.removed_by and not set(o.removed_by) - LIMITS.keys()]
    found: dict[str, Nearest] = {}
    for limit, figure in LIMITS.items():
        if (job.budget_usd if limit is Code.BUDGET else job.deadline_s) is None or not fitting:
            continue
        only_this = [o for o in fitting if o.removed_by == (limit,)] or fitting
        best = min(only_this, key=figure)
        found.setdefault(best.plan.id, _gap(best, job))
    return tuple(found.values())


def _gap(option: Option, job: Job) -> Nearest:
    budget, deadline = job.budget_usd, job.deadline_s
    return Nearest(
        option=option,
        over_budget_usd=0.0 if budget is None else max(option.cost_usd.p50 - budget, 0.0),
        late_s=0.0 if deadline is None else max(option.time_s.p50 - deadline, 0.0),
    )
