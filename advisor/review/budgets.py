"""Budgets, and the forecast of when they are used up."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from advisor.spend.charges import Charge
from advisor.spend.outlays import Outlay, outlays_of

if TYPE_CHECKING:
    from advisor.store.ledger import Run


DAY, WEEK_DAYS = timedelta(days=1), 7
LEAST_WEEKS, MOST_WEEKS = 4, 13
"""Weeks that are drawn from: fewer than a month tell little, more than a quarter is another time."""
NUM_DRAWS = 999
_SEED = 20261122


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a month will have cost."""

    draws: tuple[float, ...]
    """In US dollars, in order."""
    num_weeks: int
    """Of the past that they were drawn from."""

    def quantile(self, share: float) -> float:
        """What this share of draws does not exceed."""
        return self.draws[max(0, math.ceil(share * len(self.draws)) - 1)]

    def odds_above(self, usd: float) -> float:
        """How likely the month costs more."""
        return sum(draw > usd for draw in self.draws) / len(self.draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A calendar month until now, and how it may end."""

    since: datetime
    now: datetime
    until: datetime
    spent_usd: Decimal
    daily: tuple[tuple[datetime, Decimal], ...]
    """What was spent at the end of each day so far, the first day first."""
    forecast: Forecast | None
    """None where too little is known of the past."""
    band: tuple[tuple[datetime, tuple[float, float, float]], ...]
    """The forecast at the end of each day to come: p10, p50, p90."""


def month_outlook(spent: Sequence[tuple[datetime, Decimal]], now: datetime) -> Month:
    """How the month of a moment in UTC will end, by what was spent when in it and in the weeks before."""
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
        daily=tuple(
            (end, total(usd for at, usd in this_month if at < end)) for end in _ends(month.since, now)
        ),
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
    source = random.Random(_SEED)  # noqa: S311 - guessing it gains nothing
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


def _ends(since: datetime, until: datetime) -> Iterable[datetime]:
    """Of each day of a span, and of what is left of one."""
    while since < until:
        since = min(since + DAY, until)
        yield since


def _band(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = (math.ceil(share * len(values)) - 1 for share in (0.1, 0.5, 0.9))
    ordered = sorted(values)
    return ordered[low], ordered[middle], ordered[high]


class Owner(StrEnum):
    """Of what kind is whose spending a limit counts."""

    EVERYBODY = "everybody"
    TEAM = "team"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent in a calendar month."""

    rule: str
    """Where it stands, such as ``team.yaml:4``; "" without a limit."""
    owner: Owner
    most_usd: float | None
    """None without a limit."""
    name: str = ""
    """Of the organisation, team or project; "" if not given."""
    projects: frozenset[str] | None = None
    """Whose spending counts; None is everybody's, or that of the report where it is of a team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """A budget and its month so far."""

    budget: Budget
    month: Month
    num_unknown: int
    """Runs of the month whose cost is unknown."""

    @property
    def used(self) -> float | None:
        """The share of the limit that is spent; None without one, and of a limit of 0 dollars."""
        most_usd = self.budget.most_usd
        return None if not most_usd else float(self.month.spent_usd) / most_usd

    def exceeds(self, share: float) -> bool:
        """Whether more than a share of the limit is spent."""
        most_usd = self.budget.most_usd
        return most_usd is not None and float(self.month.spent_usd) > share * most_usd

    @property
    def p_over(self) -> float | None:
        """Odds that the month ends above the limit; None where it is unknown or there is none."""
        forecast, most_usd = self.month.forecast, self.budget.most_usd
        return None if forecast is None or most_usd is None else forecast.odds_above(most_usd)


def budget_states(
    budgets: Sequence[Budget],
    runs: Iterable[Run],
    scope: Scope,
    now: datetime,
    *,
    spent: Sequence[Outlay],
    organisation: str = "",
) -> tuple[BudgetState, ...]:
    """Each budget that counts spending of the scope; without a limit of its own, the scope's month as well.

    Runs are of everybody, over the month and the weeks before, and ``spent`` what `spent_of` tells of them
    and of bills.
    """
    lost = [run for run in runs if run.cost_usd is None and month_of(now).since <= run.started_at < now]
    states = []
    for budget in _shown(budgets, scope, organisation):
        holds = Scope(projects=budget.projects).holds
        ours = [(one.at, one.usd) for one in spent if holds(one.project)]
        month = month_outlook(ours, now)
        num_unknown = sum(holds(run.project) for run in lost)
        states.append(BudgetState(budget=budget, month=month, num_unknown=num_unknown))
    return tuple(states)


def spent_of(
    runs: Iterable[Run], charges: Iterable[Charge], until: datetime, user_tag: str = ""
) -> tuple[Outlay, ...]:
    """Runs of known cost and charges before a moment, each dollar once."""
    begun = (charge for charge in charges if charge.start < until)
    known = (run for run in runs if run.cost_usd is not None and run.started_at < until)
    return outlays_of(begun, map(outlay_of, known), user_tag)


def outlay_of(run: Run) -> Outlay:
    """What a run of known cost cost."""
    return Outlay(
        at=run.started_at,
        usd=exact(run.cost_usd or 0.0),
        provider=run.provider,
        project=run.project,
        what=run.id,
        is_run=True,
        user=run.user,
    )


def _shown(budgets: Sequence[Budget], scope: Scope, organisation: str) -> Iterator[Budget]:
    """Budgets with whose spending they count, the organisation first; all teams' where all are asked for."""
    shown = list(_of_scope(budgets, scope))
    whole = scope.projects is None
    if not any(one.owner is Owner.EVERYBODY if whole else one.projects == scope.projects for one in shown):
        owner, name = (Owner.EVERYBODY, organisation) if whole else (Owner.TEAM, scope.team or "")
        if whole or not shown:
            yield Budget(rule="", owner=owner, most_usd=None, name=name, projects=scope.projects)
    order = list(Owner)
    yield from sorted(shown, key=lambda one: (order.index(one.owner), one.name))


def _of_scope(budgets: Sequence[Budget], scope: Scope) -> Iterator[Budget]:
    is_one = scope.projects is not None and len(scope.projects) == 1
    for budget in budgets:
        if budget.owner is Owner.EVERYBODY:
            yield budget
        elif budget.projects is not None:
            if scope.projects is None or budget.projects & scope.projects:
                yield budget
        # Of a file that names no team we know, the report's own projects are meant.
        elif budget.owner is Owner.TEAM:
            yield replace(budget, projects=scope.projects if scope.team is not None else None)
        elif is_one:
            yield replace(budget, projects=scope.projects)


NOTHING = Decimal(0)


def exact(usd: float) -> Decimal:
    """The number that a person or a cloud wrote, of which the database keeps the nearest double.

    >>> exact(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(usd))


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 of nothing."""
    return sum(amounts, NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From a moment on, and until another that does not belong to it; both in UTC."""

    since: datetime
    until: datetime

    def holds(self, moment: datetime) -> bool:
        """Whether a moment lies within."""
        return self.since <= moment < self.until

    @property
    def days(self) -> float:
        """How long it is."""
        return (self.until - self.since) / timedelta(days=1)

    def weeks(self) -> Iterator[date]:
        """The Mondays of all weeks that it touches."""
        last = (self.until - timedelta(microseconds=1)).date()
        monday = monday_of(self.since)
        while monday <= last:
            yield monday
            monday += timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose runs and charges count."""

    team: str | None = None
    """Its name; None without one."""
    projects: frozenset[str] | None = None
    """Those that count; None for all."""

    def holds(self, project: str | None) -> bool:
        """Whether what belongs to a project counts."""
        return self.projects is None or project in self.projects


def monday_of(moment: datetime) -> date:
    """The Monday of a moment's week, in UTC.

    >>> monday_of(datetime(2026, 11, 22, 23, 59, tzinfo=UTC))
    datetime.date(2026, 11, 16)
    """
    day = moment.astimezone(UTC).date()
    return day - timedelta(days=day.weekday())


def month_of(moment: datetime) -> Period:
    """The calendar month of a moment, in UTC; a moment that ends a month belongs to it.

    >>> month_of(datetime(2026, 11, 22, tzinfo=UTC)).days
    30.0
    """
    inside = moment.astimezone(UTC) - timedelta(microseconds=1)
    start = inside.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Period(since=start, until=(start + timedelta(days=32)).replace(day=1))
