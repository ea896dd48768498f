"""Each pick by its own figure, and what decides between equals."""

import math
from dataclasses import replace

import pytest

from advisor.core.findings.about_answers import BestOfTotal, Cheapest, ObjectiveOfPolicy
from advisor.core.findings.about_estimates import EditScript
from advisor.core.values import Market, PickName
from advisor.report.words import sentence
from recommender.ranking.choice import best_of, cheapest, fastest, picked_by, picks_of, recommended_of
from recommender.ranking.value import Worth
from tests.builders import make_job, make_plan
from tests.recommendations import guessed, make_option

A, B, C = make_option("A", 5.0, 10.0), make_option("B", 4.0, 20.0), make_option("C", 1.0, 68.0)
JOB = make_job()


def test_cheapest_and_fastest_go_by_the_medians():
    assert cheapest([C, B, A], Worth()) is A
    assert fastest([A, B, C]) is C


def test_of_equals_the_other_figure_decides_then_the_risk():
    dearer, slower = make_option("D", 1.0, 70.0), make_option("E", 6.0, 10.0)
    assert fastest([dearer, C]) is C
    assert cheapest([slower, A], Worth()) is A
    spot = make_option("0", 5.0, 10.0, plan=make_plan("0", market=Market.SPOT))
    assert cheapest([spot, A], Worth()) is A
    assert fastest([spot, A]) is A


def test_a_price_that_nobody_quoted_is_the_cheapest_at_its_p90_or_not_at_all():
    guess = make_option("G", 5.0, 5.0)
    assert cheapest([A, guess], Worth()) is guess
    for p90_usd, best in ((12.0, "A"), (9.0, "G")):
        assert cheapest([A, guessed(guess, p90_usd)], Worth()).plan.id == best


@pytest.mark.parametrize(("p90_usd", "is_told"), [(12.0, True), (9.0, False)])
def test_a_guess_that_would_read_as_cheaper_is_told(p90_usd, is_told):
    options = [A, guessed(make_option("G", 5.0, 5.0), p90_usd)]
    reason = next(pick.reason for pick in picks_of(options, JOB) if pick.name is PickName.CHEAPEST)
    assert ("was never quoted counts at its p90" in sentence(reason)) is is_told


@pytest.mark.parametrize("name", PickName)
def test_the_one_to_take_is_the_pick_that_was_asked_for(name):
    options, job = [A, B, C], make_job(pick=name)
    picks = picks_of(options, job)
    plan_id, rule = recommended_of(picks, job)
    assert plan_id == best_of(options, job).plan.id == picked_by(name, options, JOB).plan.id
    assert isinstance(rule, ObjectiveOfPolicy)
    assert [pick.name for pick in picks] == list(PickName)


def test_without_a_wish_it_is_the_best_value():
    plan_id, rule = recommended_of(picks_of([A, B, C], JOB), JOB)
    assert (plan_id, type(rule)) == ("A", BestOfTotal)
    assert best_of([A, B, C], JOB) is A


def test_the_cheapest_counts_work_on_the_script():
    wrapped = make_option("D", 2.0, 8.0, script_changes=(EditScript(what="wrap-in-ddp"),))
    assert cheapest([A, wrapped], Worth()) is A
    assert cheapest([A, wrapped], Worth(change_usd=1.0)) is wrapped
    reason = next(pick.reason for pick in picks_of([A, wrapped], JOB) if pick.name is PickName.CHEAPEST)
    assert sentence(reason) == "the least median cost, work on the script counted"


def test_where_an_hour_is_worth_nothing_the_cheapest_is_the_one_to_take():
    job = make_job(value_of_time_usd_per_h=0.0)
    assert best_of([A, B, C], job) is A
    never = replace(A, expected=replace(A.expected, time_s=math.inf))
    assert best_of([never, B], job) is never
    assert recommended_of(picks_of([A, B, C], job), job)[1].code == Cheapest.code
