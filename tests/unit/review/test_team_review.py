"""What only the whole tells: limits of jobs, and whose runs and recommendations count."""

import pytest

from advisor.review.budgets import Scope
from advisor.review.team_review import JOB_BUDGET, JOB_DEADLINE, Records, broken_limits, review, runs_of
from tests.team import WEEK, make_entry, make_market, make_run


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
    empty = review(
        Records(advised={}, prices={}),
        period=WEEK,
        scope=Scope(),
        bills=(),
        budgets=(),
        violations=(),
        jobs=(),
        market=make_market(),
        is_own=lambda _: False,
    )
    assert empty.spending.all.usd == 0
    assert empty.billing is None
    assert empty.accuracy.time is None
    assert empty.savings == empty.leaks == empty.violations == ()
    assert [one.facts["what"] for one in empty.unknown] == ["runs", "forecast"]
