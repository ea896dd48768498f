"""Which option of the frontier to take, and what came nearest where none is feasible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.types import Job, Option
from recommender.pareto import knee


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """An option that misses, and by how much; 0 where it does not."""

    option: Option
    over_budget_usd: float
    late_s: float


def choose(frontier: Sequence[Option], job: Job) -> tuple[Option, str] | None:
    """The option to take and the rule that chose it; None for an empty frontier.

    A limit says what the user has fixed, so the other quantity is made best: a budget buys the fastest
    option, a deadline the cheapest. With both, or neither, the knee of the frontier gives the best value;
    on a frontier without one, the least product of time and cost.
    """
    if not frontier:
        return None
    fixed_cost, fixed_time = job.budget_usd is not None, job.deadline_s is not None
    if fixed_cost and not fixed_time:
        return min(frontier, key=lambda o: o.time_s.p50), "the fastest within the budget"
    if fixed_time and not fixed_cost:
        return min(frontier, key=lambda o: o.cost_usd.p50), "the cheapest before the deadline"
    best = knee([(o.time_s.p50, o.cost_usd.p50) for o in frontier])
    if best is not None:
        return frontier[best], "the best value: past it, speed gets dearer and savings get slower"
    return (
        min(frontier, key=lambda o: (o.time_s.p50 * o.cost_usd.p50, o.time_s.p50)),
        "the best value: the least time x cost",
    )


def nearest(options: Sequence[Option], job: Job) -> tuple[Nearest, ...]:
    """For each limit that is set: the best of those that meet all the others, or else of all.

    Options that do not fit in memory never come near.
    """
    fitting = [option for option in options if option.estimate.fits_memory is not False]
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
