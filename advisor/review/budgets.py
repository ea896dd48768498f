"""Monthly limits of policies beside what was spent and will be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from advisor.review.forecast import Month, month_outlook
from advisor.review.money import exact

if TYPE_CHECKING:
    from datetime import datetime

    from advisor.review.period import Scope
    from advisor.store.ledger import Run


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
