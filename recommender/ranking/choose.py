"""Which option of the frontier to take, and what came nearest where none is feasible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.values import Job, Option
from recommender.ranking.pareto import Point, knee

NEGLIGIBLE_SAVING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """An option that misses, and by how much; 0 where it does not."""

    option: Option
    over_budget_usd: float
    late_s: float


def choose(frontier: Sequence[Option]) -> tuple[Option, str] | None:
    """The option to take and the rule that chose it; None for an empty frontier.

    What is hardly faster than something cheaper is left out. The knee of the rest gives the best value. A
    frontier without one (fewer than four options, or a straight line) is judged by the least product of
    time and cost.
    """
    if not frontier:
        return None
    if len(frontier) == 1:
        return frontier[0], "the only one that nothing feasible beats in time and cost"
    frontier = _worth_their_price(frontier)
    if len(frontier) == 1:
        return frontier[0], "the cheapest: what is faster saves less than 5 % of the time"
    points = _positive([(o.time_s.p50, o.cost_usd.p50) for o in frontier])
    best = knee(points)
    if best is not None:
        return frontier[best], "the best value: from here speed gets dear, and savings slow"
    least = min(range(len(points)), key=lambda i: (points[i][0] * points[i][1], points[i][0]))
    return frontier[least], "the best value: the least time x cost"


def _worth_their_price(frontier: Sequence[Option]) -> list[Option]:
    """Without options that save less than 5 % of the time of a cheaper one: intervals are wider than that."""
    kept: list[Option] = []
    for option in sorted(frontier, key=lambda o: (o.cost_usd.p50, o.time_s.p50)):
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
    limits = {"budget", "deadline"}
    fitting = [o for o in options if set((o.removed_by or "").split(", ")) <= limits]
    found: dict[str, Nearest] = {}
    for limit in ("budget", "deadline"):
        if (job.budget_usd if limit == "budget" else job.deadline_s) is None or not fitting:
            continue
        only_this = [o for o in fitting if o.removed_by == limit] or fitting
        best = min(only_this, key=_cost_p50 if limit == "budget" else _time_p50)
        found.setdefault(best.plan.id, _gap(best, job))
    return tuple(found.values())


def _cost_p50(option: Option) -> float:
    return option.cost_usd.p50


def _time_p50(option: Option) -> float:
    return option.time_s.p50


def _gap(option: Option, job: Job) -> Nearest:
    budget, deadline = job.budget_usd, job.deadline_s
    return Nearest(
        option=option,
        over_budget_usd=0.0 if budget is None else max(option.cost_usd.p50 - budget, 0.0),
        late_s=0.0 if deadline is None else max(option.time_s.p50 - deadline, 0.0),
    )
