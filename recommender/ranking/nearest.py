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
    """The best of those that miss one limit alone, for each limit; of all, where each misses both.

    What fails for another reason (memory, sharding, software) never comes near.
    """
    fitting = [o for o in options if o.removed_by and not set(o.removed_by) - LIMITS.keys()]
    missing = {limit: [o for o in fitting if o.removed_by == (limit,)] for limit in LIMITS}
    if not any(missing.values()):
        missing = {limit: fitting for limit in LIMITS if fitting}
    best = [min(missed, key=LIMITS[limit]) for limit, missed in missing.items() if missed]
    return tuple({option.plan.id: _gap(option, job) for option in best}.values())


def _gap(option: Option, job: Job) -> Nearest:
    budget, deadline = job.budget_usd, job.deadline_s
    return Nearest(
        option=option,
        over_budget_usd=0.0 if budget is None else max(option.cost_usd.p50 - budget, 0.0),
        late_s=0.0 if deadline is None else max(option.time_s.p50 - deadline, 0.0),
    )
