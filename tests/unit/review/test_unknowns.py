"""What a report does not know is told once, and which limits, runs and advice count."""

from datetime import timedelta

import pytest

from advisor.core.findings import Finding, about_spending
from advisor.core.values import CostKind
from advisor.report.words import sentence
from advisor.review.budgets import Scope
from advisor.review.team_review import (
    JOB_BUDGET,
    JOB_DEADLINE,
    Records,
    TeamReview,
    broken_limits,
    review,
    runs_of,
    unknown_runs,
)
from advisor.spend.charges import Bill, ChargeCategory, RowFault
from advisor.store.ledger import Run
from tests.team import WEEK, make_bill, make_charge, make_entry, make_market, make_run

FAULT = RowFault(line=7, reason="BilledCost is empty")


def reviewed(*runs: Run, bills: tuple[Bill, ...] = (), scope: Scope = Scope()) -> TeamReview:  # noqa: B008
    return review(
        Records(runs=runs, advised={}, prices={}),
        period=WEEK,
        scope=scope,
        bills=bills,
        budgets=(),
        violations=(),
        jobs=(),
        market=make_market(),
        is_own=lambda _: False,
    )


def codes(
    *runs: Run,
    bills: tuple[Bill, ...] = (),
    scope: Scope = Scope(),  # noqa: B008
) -> set[type[Finding] | str]:
    found = reviewed(*runs, bills=bills, scope=scope).unknown
    unknown: list[type[Finding] | str] = [
        one.facts.get("what", one.facts.get("why", type(one))) for one in found
    ]
    assert len(unknown) == len(set(unknown))
    return set(unknown) - {"forecast", "prices"}


def test_all_is_known_of_a_billed_run():
    assert codes(make_run(), bills=(make_bill(make_charge()),)) == set()


def test_each_unknown_has_a_code():
    runs = (make_run(usd=None), make_run(cost_kind=CostKind.ESTIMATED), make_run(instance_type=None))
    bill = make_bill(
        make_charge(),
        make_charge(currency="EUR"),
        make_charge(category=ChargeCategory.TAX),
        make_charge(end=WEEK.until),
        make_charge(project=None),
        faults=(FAULT,),
    )
    again = make_bill(make_charge(), name="again.csv")
    assert codes(*runs, bills=(bill, again)) == {
        about_spending.RunCostsUnknown,
        "estimated",
        "machines",
        "long-charges",
        "other-currency",
        "overlap",
        about_spending.LeftOut,
    }


def test_what_cannot_be_true_is_named_and_counted():
    (finding,) = unknown_runs((), [f"the run {number}: cost_usd is inf" for number in range(5)])
    assert isinstance(finding, about_spending.LeftOut)
    assert "5 records" in (line := sentence(finding))
    assert "the run 2: cost_usd is inf; and 2 more" in line


def test_charges_without_a_project_are_a_teams_matter():
    bills = (make_bill(make_charge(project=None)),)
    scope = Scope(team="vision", projects=frozenset({"resnet"}))
    assert "untagged" in codes(make_run(), bills=bills, scope=scope)
    assert "untagged" not in codes(make_run(), bills=bills)


def test_an_empty_period_is_told_first():
    late = make_run(started_at=WEEK.until + timedelta(days=1))
    assert isinstance(reviewed(late).unknown[0], about_spending.ReportGap)
    assert reviewed(late).unknown[0].facts["what"] == "runs"


def test_prices_and_a_forecast_that_nobody_knows_are_told():
    unknown = reviewed(make_run()).unknown
    assert {
        about_spending.ReportGap(what="prices", names=["A10G"]),
        about_spending.ReportGap(what="forecast", num=4),
    } <= set(unknown)


def test_the_first_faults_of_a_bill_are_quoted():
    faults = tuple(RowFault(line=line, reason="BilledCost is empty") for line in range(2, 8))
    (told,) = [
        one for one in reviewed(make_run(), bills=(make_bill(make_charge(), faults=faults),)).unknown
        if isinstance(one, about_spending.LeftOut)
    ]  # fmt: skip
    assert told.facts["num_left_out"] == 6
    assert told.facts["first"] == [f"line {line}: BilledCost is empty" for line in (2, 3, 4)]


@pytest.mark.parametrize(
    ("run", "rules"),
    [
        (make_run(usd=50.0, recommendation_id="entry", duration_s=3600.0), []),
        (make_run(usd=50.01, recommendation_id="entry", duration_s=3600.0), [JOB_BUDGET]),
        (make_run(usd=1.0, recommendation_id="entry", duration_s=3601.0), [JOB_DEADLINE]),
        (make_run(usd=51.0, recommendation_id="entry", duration_s=9e9), [JOB_BUDGET, JOB_DEADLINE]),
        (make_run(usd=None, recommendation_id="entry", duration_s=None), []),
        (make_run(usd=99.0, recommendation_id=None), []),
    ],
)
def test_a_run_is_held_against_what_was_asked_for(run, rules):
    entry = make_entry(budget_usd=50.0, deadline_s=3600.0)
    assert [one.rule for one in broken_limits([run], {"entry": entry})] == rules


def test_without_limits_none_is_broken():
    run = make_run(usd=1e6, recommendation_id="entry", duration_s=1e9)
    assert list(broken_limits([run], {"entry": make_entry()})) == []


def test_a_scope_and_a_period_choose_the_runs():
    runs = make_run(1, id="a"), make_run(2, id="b", project="bert"), make_run(8, id="c")
    scope = Scope(team="vision", projects=frozenset({"resnet"}))
    assert [run.id for run in runs_of(runs, WEEK, scope)] == ["a"]
    assert [run.id for run in runs_of(runs, WEEK, Scope())] == ["a", "b"]


def test_a_review_of_nothing_is_a_review():
    empty = reviewed()
    assert empty.spending.all.usd == 0
    assert empty.billing is None
    assert empty.accuracy.time is None
    assert empty.savings == empty.leaks == empty.violations == ()
    assert [one.facts["what"] for one in empty.unknown] == ["runs", "forecast"]
