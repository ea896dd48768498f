"""What came nearest where nothing is feasible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.findings import Code
from advisor.core.values import Job, Option


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
