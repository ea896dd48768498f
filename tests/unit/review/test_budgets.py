"""Monthly limits: whose spending they count, and the odds to exceed them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from advisor.review.budgets import Budget, BudgetState, Owner, budget_states
from advisor.review.period import Scope
from tests.team import make_run

NOW = datetime(2026, 11, 22, tzinfo=UTC)
RUNS = tuple(
    make_run(started_at=NOW - timedelta(days=ago + 0.5), project=project, usd=usd)
    for ago in range(60)
    for project, usd in (("resnet", 10.0), ("bert", 4.0))
)
VISION = Scope(team="vision", projects=frozenset({"resnet"}))


def limit(usd: float, owner: Owner) -> Budget:
    return Budget(rule="team.yaml:3", owner=owner, most_usd=usd)


def states(*budgets: Budget, scope: Scope = Scope()) -> list[BudgetState]:  # noqa: B008
    return list(budget_states(budgets, RUNS, scope, NOW))


def test_an_organisation_counts_everybody_whoever_asks() -> None:
    for scope in (Scope(), VISION):
        (state,) = states(limit(400, Owner.EVERYBODY), scope=scope)
        assert state.month.spent_usd == 21 * 14
        assert state.p_over == 1


def test_a_team_counts_its_own_where_it_is_asked_for() -> None:
    (state,) = states(limit(301, Owner.TEAM), scope=VISION)
    assert (state.month.spent_usd, state.p_over) == (210, 0)
    (state,) = states(limit(301, Owner.TEAM))
    assert state.month.spent_usd == 21 * 14


def test_a_projects_limit_counts_where_one_project_is_asked_for() -> None:
    budgets = limit(250, Owner.PROJECT), limit(9000, Owner.EVERYBODY)
    assert [state.budget.owner for state in states(*budgets)] == [Owner.EVERYBODY]
    project, _ = states(*budgets, scope=Scope(projects=frozenset({"bert"})))
    assert project.month.spent_usd == 84


def test_without_a_limit_the_month_is_shown_all_the_same() -> None:
    (state,) = states(scope=VISION)
    assert (state.budget.most_usd, state.p_over, state.month.spent_usd) == (None, None, 210)


def test_runs_of_unknown_cost_are_counted_beside_it() -> None:
    unknown = make_run(started_at=NOW - timedelta(days=1), usd=None)
    old = make_run(started_at=NOW - timedelta(days=40), usd=None)
    (state,) = budget_states((), [*RUNS, unknown, old], Scope(), NOW)
    assert state.num_unknown == 1


def test_of_a_short_past_no_odds_are_told() -> None:
    (state,) = budget_states([limit(1, Owner.EVERYBODY)], RUNS[:4], Scope(), NOW)
    assert state.p_over is None
