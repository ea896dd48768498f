"""Everything that a team's report says, from what the ledger, bills, policies and prices hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.core.findings import Code, Finding, finding
from advisor.review.accuracy import Accuracy, accuracy_of, with_advice
from advisor.review.billing import Billing, billing_of
from advisor.review.budgets import Budget, BudgetState, budget_states
from advisor.review.leaks import leaks_of
from advisor.review.price_moves import PriceMoves, price_moves
from advisor.review.savings import Recurring, Saving, TodaysMarket, savings_of
from advisor.review.spending import Spending, spending_of
from advisor.review.unknowns import unknown_bills, unknown_prospects, unknown_runs

if TYPE_CHECKING:
    from advisor.core.values import PricePoint
    from advisor.review.period import Period, Scope
    from advisor.spend.charges import Bill
    from advisor.store.ledger import LedgerEntry, Run


JOB_BUDGET, JOB_DEADLINE = "the budget of the job", "the deadline of the job"
"""Limits that a person asked for, as rules of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule of a policy, or a limit of the job itself, that a run did not keep."""

    rule: str
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What the store holds.

    Attributes:
        runs: of everybody, over the period, its month, and the weeks that a forecast looks at; in order.
        recommendations: given within the period.
        advised: recommendations that runs of the period followed, and those of the period, by id.
        prices: points of the period by GPU.
        impossible: what cannot be true in the store, and is none of the above: a line each.
    """

    runs: tuple[Run, ...] = ()
    recommendations: tuple[LedgerEntry, ...] = ()
    advised: Mapping[str, LedgerEntry]
    prices: Mapping[str, Sequence[PricePoint]]
    impossible: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamReview:
    """What a report says.

    Attributes:
        runs: of the scope that started within the period.
        recommendations: of the scope, given within the period.
        advised: all that these runs and recommendations are about, by id.
        billing: None without bills.
        leaks: where money leaks, the dearest first.
        unknown: what is not known, and counts nowhere.
    """

    period: Period
    scope: Scope
    runs: tuple[Run, ...]
    recommendations: tuple[LedgerEntry, ...]
    advised: Mapping[str, LedgerEntry]
    spending: Spending
    billing: Billing | None
    accuracy: Accuracy
    budgets: tuple[BudgetState, ...]
    violations: tuple[Violation, ...]
    moves: PriceMoves
    savings: tuple[Saving, ...]
    leaks: tuple[Finding, ...]
    unknown: tuple[Finding, ...]


def runs_of(runs: Sequence[Run], period: Period, scope: Scope) -> tuple[Run, ...]:
    """Runs of the scope that started within the period."""
    return tuple(run for run in runs if period.holds(run.started_at) and scope.holds(run.project))


def broken_limits(runs: Iterable[Run], advised: Mapping[str, LedgerEntry]) -> Iterator[Violation]:
    """Runs that cost more or took longer than the question allowed that they were recommended for."""
    for run, entry in with_advice(runs, advised):
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
    jobs: Sequence[Recurring],
    market: TodaysMarket,
    is_own: Callable[[Run], bool],
) -> TeamReview:
    """Put everything together.

    Args:
        records: of the store.
        period: of the report.
        scope: whose runs and charges count.
        bills: what clouds billed; none if nobody gave any.
        budgets: monthly limits of the policies.
        violations: of policies, by runs of the report.
        jobs: of the report that come again.
        market: today's.
        is_own: whether a run used a machine of one's own.
    """
    runs = runs_of(records.runs, period, scope)
    billing = billing_of(bills, runs, period, scope) if bills else None
    accuracy = accuracy_of(runs, records.advised)
    states = budget_states(budgets, records.runs, scope, period.until)
    moves = price_moves(records.prices, runs, period)
    savings, unpriced = savings_of(jobs, market)
    unknown = [*unknown_runs(runs, records.impossible), *unknown_prospects(states, moves, unpriced)]
    if billing is not None:
        unknown += unknown_bills(bills, billing, is_of_team=scope.projects is not None)
    if not runs:
        unknown.insert(0, finding(Code.NO_RUNS_IN_PERIOD))
    return TeamReview(
        period=period,
        scope=scope,
        runs=runs,
        recommendations=tuple(entry for entry in records.recommendations if scope.holds(entry.project)),
        advised=records.advised,
        spending=spending_of(runs, period, is_own),
        billing=billing,
        accuracy=accuracy,
        budgets=states,
        violations=(*violations, *broken_limits(runs, records.advised)),
        moves=moves,
        savings=savings,
        leaks=leaks_of(runs, accuracy.comparisons, billing, lambda run: run.recommendation_id is not None),
        unknown=tuple(unknown),
    )
