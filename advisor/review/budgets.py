"""Budgets, and the forecast of when they are used up."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from advisor.review.period import exact, month_of, total

if TYPE_CHECKING:
    from datetime import datetime

    from advisor.review.period import Scope
    from advisor.store.ledger import Run


DAY, WEEK_DAYS = timedelta(days=1), 7
LEAST_WEEKS, MOST_WEEKS = 4, 13
"""Weeks that are drawn from: fewer than a month tell little, more than a quarter is another time."""
NUM_DRAWS = 999
_SEED = 20261122


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a month will have cost.

    Attributes:
        draws: in US dollars, in order.
        num_weeks: of the past that they were drawn from.
    """

    draws: tuple[float, ...]
    num_weeks: int

    def quantile(self, share: float) -> float:
        """What this share of draws does not exceed."""
        return self.draws[max(0, math.ceil(share * len(self.draws)) - 1)]

    def odds_above(self, usd: float) -> float:
        """How likely the month costs more."""
        return sum(draw > usd for draw in self.draws) / len(self.draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A calendar month until now, and how it may end.

    Attributes:
        spent_usd: since its first day.
        daily: what was spent at the end of each day so far, the first day first.
        forecast: None where too little is known of the past.
        band: the forecast at the end of each day to come: p10, p50, p90.
    """

    since: datetime
    now: datetime
    until: datetime
    spent_usd: Decimal
    daily: tuple[tuple[datetime, Decimal], ...]
    forecast: Forecast | None
    band: tuple[tuple[datetime, tuple[float, float, float]], ...]


def month_outlook(spent: Sequence[tuple[datetime, Decimal]], now: datetime) -> Month:
    """How the month of a moment will end.

    Args:
        spent: when, and how many US dollars, over the month and as many weeks before as are known.
        now: in UTC; nothing after it counts.
    """
    month = month_of(now)
    before = [(at, usd) for at, usd in spent if at < now]
    this_month = [(at, usd) for at, usd in before if month.since <= at]
    so_far = total(usd for _, usd in this_month)
    weeks = _weeks(before, now)
    ends = tuple(_ends(now, month.until))
    paths = _paths(weeks, (month.until - now) / DAY, float(so_far)) if len(weeks) >= LEAST_WEEKS else []
    return Month(
        since=month.since,
        now=now,
        until=month.until,
        spent_usd=so_far,
        daily=tuple(_so_far(this_month, month.since, now)),
        forecast=Forecast(draws=tuple(sorted(path[-1] for path in paths)), num_weeks=len(weeks))
        if paths
        else None,
        band=tuple((end, _band([path[day] for path in paths])) for day, end in enumerate(ends) if paths),
    )


def _weeks(spent: Iterable[tuple[datetime, Decimal]], now: datetime) -> list[list[float]]:
    """Whole weeks that end now, the last first, each with its seven days in order."""
    spent = list(spent)
    first = min((at for at, _ in spent), default=now)
    num_weeks = min(MOST_WEEKS, (now - first) // (WEEK_DAYS * DAY))
    days = [0.0] * (num_weeks * WEEK_DAYS)
    for at, usd in spent:
        ago = math.ceil((now - at) / DAY) - 1
        if ago < len(days):
            days[ago] += float(usd)
    return [days[start : start + WEEK_DAYS][::-1] for start in range(0, len(days), WEEK_DAYS)]


def _paths(weeks: Sequence[Sequence[float]], days_left: float, so_far: float) -> list[list[float]]:
    """Draws of what will have been spent at the end of each day to come; the last may be a part of one."""
    source = random.Random(_SEED)  # noqa: S311 - nobody gains by guessing it
    weeks = _spread(weeks)
    num_days = math.ceil(days_left)
    paths = []
    for _ in range(NUM_DRAWS):
        # What is known of the weeks is itself a sample: without this the band would be too narrow.
        known = source.choices(weeks, k=len(weeks))
        drawn = [day for _ in range(0, num_days, WEEK_DAYS) for day in source.choice(known)]
        spent, path = so_far, []
        for day in range(num_days):
            spent += drawn[day] * min(1.0, days_left - day)
            path.append(spent)
        paths.append(path or [so_far])
    return paths


def _spread(weeks: Sequence[Sequence[float]]) -> list[list[float]]:
    """Weeks as far apart as those of the next months may be, of which these are few.

    As in a prediction interval of Student's: n weeks are too close to their own mean by (n - 1) / (n + 1).
    """
    wider = math.sqrt((len(weeks) + 1) / (len(weeks) - 1))
    means = [sum(days) / len(weeks) for days in zip(*weeks, strict=True)]
    return [
        [max(0.0, mean + wider * (day - mean)) for day, mean in zip(week, means, strict=True)]
        for week in weeks
    ]


def _ends(now: datetime, until: datetime) -> Iterable[datetime]:
    end = now
    while end < until:
        end = min(end + DAY, until)
        yield end


def _so_far(
    spent: Sequence[tuple[datetime, Decimal]], since: datetime, now: datetime
) -> Iterable[tuple[datetime, Decimal]]:
    end = since
    while end < now:
        end = min(end + DAY, now)
        yield end, total(usd for at, usd in spent if at < end)


def _band(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = (math.ceil(share * len(values)) - 1 for share in (0.1, 0.5, 0.9))
    ordered = sorted(values)
    return ordered[low], ordered[middle], ordered[high]


class Owner(StrEnum):
    """Whose spending a limit counts."""

    EVERYBODY = "everybody"
    TEAM = "team"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent in a calendar month.

    Attributes:
        rule: where it stands, such as ``team.yaml:4``; "" without a limit.
        most_usd: None without a limit.
    """

    rule: str
    owner: Owner
    most_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A budget and its month so far.

    Attributes:
        num_unknown: runs of the month whose cost nobody knows.
    """

    budget: Budget
    month: Month
    num_unknown: int

    @property
    def p_over(self) -> float | None:
        """Odds that the month ends above the limit; None where nobody knows or there is none."""
        forecast, most_usd = self.month.forecast, self.budget.most_usd
        return None if forecast is None or most_usd is None else forecast.odds_above(most_usd)


def budget_states(
    budgets: Sequence[Budget], runs: Iterable[Run], scope: Scope, now: datetime
) -> tuple[BudgetState, ...]:
    """Each budget that counts runs of the scope; the spending of the scope itself where none does.

    Args:
        budgets: of the policies.
        runs: of everybody, over the month and the weeks before.
        scope: of the report.
        now: the end of the report's period.
    """
    runs = [run for run in runs if run.started_at < now]
    ours = [run for run in runs if scope.holds(run.project)]
    of_owner: Mapping[Owner, Sequence[Run]] = {
        Owner.EVERYBODY: runs,
        Owner.TEAM: ours if scope.team is not None else runs,
        Owner.PROJECT: ours,
    }
    wanted = [budget for budget in budgets if budget.owner is not Owner.PROJECT or _is_one_project(scope)]
    unlimited = Budget(
        rule="", owner=Owner.EVERYBODY if scope.projects is None else Owner.TEAM, most_usd=None
    )
    return tuple(
        _state(budget, ours if budget is unlimited else of_owner[budget.owner], now)
        for budget in wanted or [unlimited]
    )


def _is_one_project(scope: Scope) -> bool:
    return scope.projects is not None and len(scope.projects) == 1


def _state(budget: Budget, runs: Sequence[Run], now: datetime) -> BudgetState:
    month = month_outlook([(r.started_at, exact(r.cost_usd)) for r in runs if r.cost_usd is not None], now)
    unknown = [r for r in runs if r.cost_usd is None and month.since <= r.started_at]
    return BudgetState(budget=budget, month=month, num_unknown=len(unknown))
