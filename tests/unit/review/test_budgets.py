"""Monthly limits: whose spending they count, and the odds to exceed them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from advisor.review.budgets import Budget, BudgetState, Owner, Scope, budget_states, spent_of
from advisor.spend.charges import Charge, ChargeCategory
from tests.team import make_charge, make_run

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
    return list(budget_states(budgets, RUNS, scope, NOW, spent=spent_of(RUNS, (), NOW)))


def test_an_organisation_counts_everybody_whoever_asks():
    for scope in (Scope(), VISION):
        (state,) = states(limit(400, Owner.EVERYBODY), scope=scope)
        assert state.month.spent_usd == 21 * 14
        assert state.p_over == 1


def test_a_team_counts_its_own_where_it_is_asked_for():
    (state,) = states(limit(301, Owner.TEAM), scope=VISION)
    assert (state.month.spent_usd, state.p_over) == (210, 0)
    everybody, state = states(limit(301, Owner.TEAM))
    assert everybody.month.spent_usd == state.month.spent_usd == 21 * 14


def test_a_projects_limit_counts_where_one_project_is_asked_for():
    budgets = limit(250, Owner.PROJECT), limit(9000, Owner.EVERYBODY)
    assert [state.budget.owner for state in states(*budgets)] == [Owner.EVERYBODY]
    _, project = states(*budgets, scope=Scope(projects=frozenset({"bert"})))
    assert project.month.spent_usd == 84


def test_without_a_limit_the_month_is_shown_all_the_same():
    (state,) = states(scope=VISION)
    assert (state.budget.most_usd, state.p_over, state.month.spent_usd) == (None, None, 210)


def test_runs_of_unknown_cost_are_counted_beside_it():
    unknown = make_run(started_at=NOW - timedelta(days=1), usd=None)
    old = make_run(started_at=NOW - timedelta(days=40), usd=None)
    (state,) = budget_states((), [*RUNS, unknown, old], Scope(), NOW, spent=spent_of(RUNS, (), NOW))
    assert state.num_unknown == 1


def test_of_a_short_past_no_odds_are_told():
    spent = spent_of(RUNS[:4], (), NOW)
    (state,) = budget_states([limit(1, Owner.EVERYBODY)], RUNS[:4], Scope(), NOW, spent=spent)
    assert state.p_over is None


def test_every_teams_limit_and_the_organisations_have_a_row():
    teams = {"vision": frozenset({"resnet"}), "language": frozenset({"bert"})}
    budgets = [limit(1000, Owner.EVERYBODY)]
    budgets += [replace(limit(100, Owner.TEAM), name=name, projects=of) for name, of in teams.items()]
    rows = states(*budgets)
    assert [(state.budget.name, float(state.month.spent_usd)) for state in rows] == [
        ("", 294.0), ("language", 84.0), ("vision", 210.0),
    ]  # fmt: skip
    assert rows[1].used == pytest.approx(0.84)
    assert [state.budget.name for state in states(*budgets, scope=VISION)] == ["", "vision"]


def test_bills_and_runs_count_together_and_each_dollar_once():
    day = NOW - timedelta(days=3)
    bill = [
        make_charge(start=day, end=day + timedelta(hours=1), usd="50", project=None),
        make_charge(start=day, end=day, usd="7", project="bert"),
    ]
    runs = [
        make_run(started_at=day, project="resnet", usd=30.0),  # in the untagged 50
        make_run(started_at=day, project="bert", usd=9.0),  # in the 7
        make_run(started_at=day + timedelta(days=1), project="resnet", usd=4.0),  # not billed yet
        make_run(started_at=day, project="resnet", usd=2.0, provider="lambda"),  # no bill of that cloud
    ]
    budgets = [limit(1000, Owner.EVERYBODY), replace(limit(9, Owner.TEAM), projects=frozenset({"resnet"}))]
    whole, team = budget_states(budgets, runs, Scope(), NOW, spent=spent_of(runs, bill, NOW))
    assert (whole.month.spent_usd, team.month.spent_usd) == (63, 36)


@pytest.mark.parametrize(
    ("facts", "is_counted"),
    [
        ({"instance_type": None, "service": "Amazon S3"}, True),
        ({"instance_type": None, "details": {"ServiceCategory": "Storage"}}, True),
        ({"instance_type": None, "details": {"ServiceCategory": "Compute"}}, False),
        ({"category": ChargeCategory.CREDIT}, True),
        ({"details": {"CommitmentDiscountStatus": "Unused"}}, True),
        ({}, False),
    ],
)
def test_only_a_machine_on_the_bill_stands_for_the_runs_of_its_day(facts, is_counted):
    day = NOW - timedelta(days=3)
    runs = [make_run(started_at=day, project="resnet", usd=100.0)]
    bill = [make_charge(start=day, end=day + timedelta(hours=1), usd="3", project="bert", **facts)]
    assert sum(one.usd for one in spent_of(runs, bill, NOW)) == (103 if is_counted else 3)


def test_a_bill_by_month_reaches_to_its_last_day_of_machines():
    first, tenth = NOW.replace(day=1), NOW.replace(day=10)

    def spent(*more: Charge, start: datetime = first) -> float:
        month = make_charge(start=start, end=start + timedelta(days=30), usd="3", project="bert")
        runs = [make_run(started_at=NOW.replace(day=day), usd=10.0) for day in (2, 10, 20)]
        return float(sum(one.usd for one in spent_of(runs, (month, *more), NOW)))

    by_day = make_charge(start=tenth, end=tenth + timedelta(hours=1), usd="1", project="bert")
    assert spent() == 3
    assert spent(by_day) == 14
    # Days are those of UTC, however the bill writes them: this month begins on the 2nd, after the run of it.
    home = timezone(timedelta(hours=-12))
    assert spent(start=datetime(2026, 11, 1, 13, tzinfo=home)) == 3
    assert spent(start=datetime(2026, 11, 2, 13, tzinfo=home)) == 13
