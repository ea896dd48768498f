"""Everything that a team's report says, from what the ledger, bills, policies and prices hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from advisor.config.settings import ReportSettings
from advisor.core.findings import Finding
from advisor.core.findings.about_spending import ChargesDoubtful, LeftOut, ReportGap, RunCostsUnknown
from advisor.core.iterables import grouped
from advisor.core.values import CostKind, Interval, Market, PricePoint
from advisor.pricing.price_history import PriceSeries, series_of, spot_quantiles
from advisor.review import savings as review_savings
from advisor.review.budgets import (
    LEAST_WEEKS,
    Budget,
    BudgetState,
    Period,
    Scope,
    budget_states,
    spent_of,
    total,
)
from advisor.review.spending import Billing, Spending, billing_of, faults_in, leaks_of, spending_of
from advisor.review.who_spent import Showback, showback_of
from advisor.spend.charges import Bill

if TYPE_CHECKING:
    from advisor.store.ledger import LedgerEntry, Run

MOST_STEPS = 40
"""Steps of a drawn history; each has a band."""
MOST_PLACES = 2
"""Places of a machine, where no run tells which it uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceStretch:
    """What a machine cost over a part of the period."""

    since: datetime
    usd_per_h: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMove:
    """How the price of a machine moved, as one source gives it."""

    gpu: str
    series: PriceSeries
    usd_per_h: Interval
    """Over the period, weighted by time."""
    steps: tuple[PriceStretch, ...]
    """The same over its parts, in order."""
    is_used: bool
    """Whether a run used it in this place."""

    @property
    def first_usd_per_h(self) -> float:
        """At the beginning of the period, or of what is remembered of it."""
        return self.series.points[0].usd_per_h

    @property
    def last_usd_per_h(self) -> float:
        """At its end."""
        return self.series.points[-1].usd_per_h


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMoves:
    """Moves by GPU, and GPUs of which no price is remembered."""

    moves: tuple[PriceMove, ...]
    unknown_gpus: tuple[str, ...]


def price_moves(
    points: Mapping[str, Sequence[PricePoint]], runs: Collection[Run], period: Period
) -> PriceMoves:
    """Moves of machines and places that runs used; where they do not tell, of the cheapest places."""
    markets = {(run.gpu, run.provider, run.market) for run in runs if run.market is not None}
    places = {(run.provider, run.instance_type, run.region, run.market) for run in runs}
    moves: list[PriceMove] = []
    for gpu in sorted(points):
        paid = [one for one in series_of(points[gpu]) if (gpu, one.provider, one.market) in markets]
        moves += _moves(gpu, paid, places, period)
    rented = {gpu for gpu, _, _ in markets}
    return PriceMoves(moves=tuple(moves), unknown_gpus=tuple(sorted(rented - {move.gpu for move in moves})))


def _moves(
    gpu: str,
    paid: Iterable[PriceSeries],
    places: Collection[tuple[str, str | None, str | None, Market | None]],
    period: Period,
) -> Iterator[PriceMove]:
    groups = grouped(paid, lambda one: (one.provider, one.instance_type, one.market))
    for group in groups.values():
        used = [s for s in group if (s.provider, s.instance_type, s.region, s.market) in places]
        cheapest = sorted(
            used or group, key=lambda one: (one.points[-1].usd_per_h, one.region, one.zone or "")
        )
        for series in cheapest[:MOST_PLACES]:
            held = spot_quantiles(series.points, start=period.since, end=period.until)
            if held is not None:
                steps = tuple(_steps(series, period))
                yield PriceMove(gpu=gpu, series=series, usd_per_h=held, steps=steps, is_used=bool(used))


def _steps(series: PriceSeries, period: Period) -> Iterator[PriceStretch]:
    """Parts of whole days, each with the prices that held in it."""
    days = max(1, -(-int(period.days) // MOST_STEPS))
    points, first = list(series.points), 0
    start = period.since
    while start < period.until:
        end = min(start + timedelta(days=days), period.until)
        # The price in force at the start, and all that began since.
        while first + 1 < len(points) and points[first + 1].observed_at <= start:
            first += 1
        last = first
        while last < len(points) and points[last].observed_at < end:
            last += 1
        held = spot_quantiles(points[first:last], start=start, end=end)
        if held is not None:
            yield PriceStretch(since=start, usd_per_h=held)
        start = end


_MOST_NAMES = 3


def unknown_runs(runs: Sequence[Run], impossible: Sequence[str] = ()) -> Iterator[Finding]:
    """Runs of which something is missing, and records that cannot be true."""
    if impossible:
        first = list(impossible[:_MOST_NAMES])
        yield LeftOut(where="the database", num_left_out=len(impossible), num_read=None, first=first)
    without_cost = [run for run in runs if run.cost_usd is None]
    if without_cost:
        yield RunCostsUnknown(num_runs=len(without_cost), runs=[run.id for run in without_cost[:_MOST_NAMES]])
    estimated = [run for run in runs if run.cost_kind is CostKind.ESTIMATED]
    if estimated:
        yield ReportGap(what="estimated", num=len(estimated))


def unknown_bills(
    bills: Sequence[Bill], billing: Billing, period: Period, *, is_of_team: bool
) -> Iterator[Finding]:
    """What of the bills could not be read, or is not added up."""
    for bill in bills:
        faults = faults_in(bill, period)
        if faults:
            yield LeftOut(
                where=bill.name,
                num_left_out=len(faults),
                num_read=len(bill.charges),
                usd=float(total(fault.usd for fault in faults if fault.usd is not None)),
                num_unknown=sum(fault.usd is None for fault in faults),
                first=[f"line {fault.line}: {fault.reason}" for fault in faults[:_MOST_NAMES]],
            )
    if billing.num_odd:
        odd = ((b.name, c.odd) for b in bills for c in b.charges if c.odd and period.holds(c.start))
        yield ReportGap(what="odd-cells", num=billing.num_odd, names=[", ".join(next(odd))])
    for currency, (amount, num) in billing.other_currencies.items():
        yield ChargesDoubtful(why="other-currency", currency=currency, amount=float(amount), num_charges=num)
    for overlap in billing.overlaps:
        yield ChargesDoubtful(
            why="overlap", bills=list(overlap.bills), provider=overlap.provider, num_days=overlap.days
        )
    if is_of_team and billing.untagged_usd:
        yield ChargesDoubtful(why="untagged", usd=float(billing.untagged_usd))
    if billing.num_long:
        yield ReportGap(what="long-charges", num=billing.num_long)
    if billing.num_without_machine:
        yield ReportGap(what="machines", num=billing.num_without_machine)


def unknown_prospects(
    states: Sequence[BudgetState], moves: PriceMoves, unpriced: Sequence[review_savings.Recurring]
) -> Iterator[Finding]:
    """What is unknown of the future, of prices and of savings."""
    if any(state.month.forecast is None for state in states):
        yield ReportGap(what="forecast", num=LEAST_WEEKS)
    if moves.unknown_gpus:
        yield ReportGap(what="prices", names=list(moves.unknown_gpus))
    if unpriced:
        scripts = [job.script for job in unpriced[:_MOST_NAMES]]
        yield ReportGap(what="unpriced-jobs", num=len(unpriced), names=scripts)


JOB_BUDGET, JOB_DEADLINE = "the budget of the job", "the deadline of the job"
"""Limits that a person asked for, as rules of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule of a policy, or a limit of the job itself, that a run did not keep."""

    rule: str
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What the store holds."""

    runs: tuple[Run, ...] = ()
    """Of everybody, over the period, its month, and the weeks that a forecast looks at; in order."""
    recommendations: tuple[LedgerEntry, ...] = ()
    advised: Mapping[str, LedgerEntry]
    """Recommendations that runs of the period followed, and those of the period, by id."""
    prices: Mapping[str, Sequence[PricePoint]]
    """Points of the period by GPU."""
    impossible: tuple[str, ...] = ()
    """What cannot be true in the store, and is none of the above: a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamReview:
    """What a report says."""

    period: Period
    scope: Scope
    organisation: str
    runs: tuple[Run, ...]
    """Of the scope that started within the period."""
    recommendations: tuple[LedgerEntry, ...]
    advised: Mapping[str, LedgerEntry]
    """All that these runs and recommendations are about, by id."""
    spending: Spending
    billing: Billing | None
    """None without bills."""
    accuracy: review_savings.Accuracy
    budgets: tuple[BudgetState, ...]
    showback: Showback
    violations: tuple[Violation, ...]
    moves: PriceMoves
    savings: tuple[review_savings.Saving, ...]
    leaks: tuple[Finding, ...]
    unknown: tuple[Finding, ...]


def runs_of(runs: Sequence[Run], period: Period, scope: Scope) -> tuple[Run, ...]:
    """Runs of the scope that started within the period."""
    return tuple(run for run in runs if period.holds(run.started_at) and scope.holds(run.project))


def broken_limits(runs: Iterable[Run], advised: Mapping[str, LedgerEntry]) -> Iterator[Violation]:
    """Runs that cost more or took longer than the question allowed that they were recommended for."""
    for run, entry in review_savings.with_advice(runs, advised):
        if run.cost_usd is not None and run.cost_usd > (entry.budget_usd or math.inf):
            yield Violation(rule=JOB_BUDGET, run=run)
        if run.duration_s is not None and run.duration_s > (entry.deadline_s or math.inf):
            yield Violation(rule=JOB_DEADLINE, run=run)


def review(
    records: Records,
    *,
    period: Period,
    scope: Scope,
    bills: Sequence[Bill],
    budgets: Sequence[Budget],
    violations: Sequence[Violation],
    jobs: Sequence[review_savings.Recurring],
    market: review_savings.TodaysMarket,
    is_own: Callable[[Run], bool],
    organisation: str = "",
    division: ReportSettings | None = None,
) -> TeamReview:
    """Put everything together; violations are of policies, and ``is_own`` is as of `spending_of`."""
    runs = runs_of(records.runs, period, scope)
    # A bill that could not be asked is no bill over nothing.
    told = [bill for bill in bills if not bill.trouble]
    billing = billing_of(told, runs, period, scope) if told else None
    accuracy = review_savings.accuracy_of(runs, records.advised)
    charges = [charge for bill in bills for charge in bill.charges]
    division = division or ReportSettings()
    spent = spent_of(records.runs, charges, period.until, division.user_tag)
    ours = [one for one in spent if period.holds(one.at) and scope.holds(one.project)]
    states = budget_states(budgets, records.runs, scope, period.until, spent=spent, organisation=organisation)
    showback = showback_of(
        spent,
        charges,
        runs_of(records.runs, period, Scope()),
        advised=records.advised,
        period=period,
        scope=scope,
        division=division,
    )
    moves = price_moves(records.prices, runs, period)
    savings, unpriced = review_savings.savings_of(jobs, market)
    unknown = [*unknown_runs(runs, records.impossible), *unknown_prospects(states, moves, unpriced)]
    if billing is not None:
        unknown += unknown_bills(bills, billing, period, is_of_team=scope.projects is not None)
    unknown += [ReportGap(what="bill", names=[bill.name, bill.trouble]) for bill in bills if bill.trouble]
    if not runs:
        unknown.insert(0, ReportGap(what="runs"))
    return TeamReview(
        period=period,
        scope=scope,
        organisation=organisation,
        runs=runs,
        recommendations=tuple(entry for entry in records.recommendations if scope.holds(entry.project)),
        advised=records.advised,
        spending=spending_of(runs, ours, period, is_own),
        billing=billing,
        accuracy=accuracy,
        budgets=states,
        showback=showback,
        violations=(*violations, *broken_limits(runs, records.advised)),
        moves=moves,
        savings=savings,
        leaks=leaks_of(runs, accuracy.comparisons, billing, lambda run: run.recommendation_id is not None),
        unknown=tuple(unknown),
    )
