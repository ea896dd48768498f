"""Two plans side by side: what decides, by figures one can follow."""

import dataclasses
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advisor.core.findings import about_answers
from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import RemovedByDeadline, RemovedByMemory
from advisor.core.units import HOUR_S
from advisor.core.values import Interval, Means, Option, Quantiles
from advisor.report.words import sentence
from recommender.comparison import PlanComparison, compared
from recommender.outcome.draws import SHARED_ERROR, log_normal, make_draws, ratio_of
from recommender.outcome.evaluate import Judged
from tests.builders import make_job, make_plan
from tests.findings import sample
from tests.recommendations import make_option, removed


def judged(option: Option, *, spread: float = 0.1) -> Judged:
    """With draws around its medians, in the order of the strata that all plans share."""
    factors = np.exp(np.linspace(-spread, spread, 999))
    return Judged(
        option=option,
        train_s=option.train_s.p50 * factors,
        time_s=option.time_s.p50 * factors,
        cost_usd=option.counted_usd * factors,
    )


def pair(a: Option, b: Option, **job: Any) -> PlanComparison:
    return compared(judged(a), judged(b), make_job(**{"value_of_time_usd_per_h": 2.0, **job}))


FAST, SLOW = make_option("Fast", 10, 140), make_option("Slow", 20, 100)


@pytest.mark.parametrize(("value", "take"), [(2.0, "B"), (3.9, "B"), (4.1, "A"), (50.0, "A")])
def test_time_for_money_is_worth_it_from_some_worth_of_an_hour_on(value, take):
    answer = pair(FAST, SLOW, value_of_time_usd_per_h=value)
    facts = answer.verdict.facts
    assert answer.verdict.by == "trade"
    assert (facts["faster"], facts["slower"], facts["take"]) == ("A", "B", take)
    assert (facts["times_faster"], facts["times_in_cost"]) == (pytest.approx(2), pytest.approx(1.4))
    # 40 dollars more for ten hours less.
    assert answer.even_usd_per_h == facts["even_usd_per_h"] == pytest.approx(4.0)
    assert (answer.p_a_cheaper, answer.p_a_sooner) == (0.0, 1.0)


def test_what_both_predictions_share_is_no_doubt_of_their_ratio():
    answer = pair(FAST, SLOW)
    assert answer.times_as_fast is not None
    assert dataclasses.astuple(answer.times_as_fast) == pytest.approx((0.5, 0.5, 0.5))
    draws = make_draws(np.random.default_rng(0))
    time_s = Interval(p10=0.8, p50=1.0, p90=1.25)
    one, same, other = (log_normal(time_s, draws.prediction_of(gpu)) for gpu in ("A", "A", "B"))
    apart = ratio_of(one, other)
    assert ratio_of(one, same) == Interval(p10=1.0, p50=1.0, p90=1.0)
    assert apart is not None
    # Two independent errors would span 1.25 to the power of 1.41; a fifth of their variance is common.
    assert apart.p90 == pytest.approx(1.25 ** math.sqrt(2 * (1 - SHARED_ERROR)), rel=0.03)
    assert ratio_of(one, np.full(len(other), math.inf)) is None


def test_dollars_of_work_on_the_script_are_told_in_what_is_dearer():
    parallel = replace(make_option("Fast", 10, 90), script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    facts = pair(parallel, SLOW).verdict.facts
    assert (facts["cost_differs_by_usd"], facts["change_usd"]) == (pytest.approx(15.0), 25.0)
    assert "1.1 x dearer than B ($25.00 to change the script for A counted): worth" in sentence(
        pair(parallel, SLOW).verdict
    )
    assert "counted" not in sentence(pair(FAST, SLOW).verdict)


def test_work_on_the_script_is_told_wherever_it_is_in_a_difference():
    """Rents of 140 and 110 dollars come to 5 dollars of difference; of 90 and 100 to 35."""
    changes = (sample(EditScript, what="wrap-in-ddp"),)
    slow = replace(make_option("Slow", 20, 110), script_changes=changes)
    assert "than B ($25.00 to change the script for B counted): worth" in sentence(pair(FAST, slow).verdict)
    best = make_option("Best", 5, 90)
    of_both = pair(best, replace(SLOW, script_changes=changes)).verdict
    assert (of_both.by, of_both.cost_differs_by_usd) == ("both", pytest.approx(35.0))
    # Medians may differ the other way: preemptions are rare and long.
    assert sentence(of_both).startswith("A is on average ")
    assert "cheaper than B ($25.00 to change the script for B counted): take A" in sentence(of_both)


def test_what_is_faster_and_cheaper_needs_no_worth_of_an_hour():
    answer = pair(SLOW, make_option("Best", 5, 50))
    assert answer.verdict.by == "both"
    facts = answer.verdict.facts
    assert (facts["faster"], facts["times_faster"], facts["times_in_cost"]) == ("B", 4.0, 2.0)
    assert answer.even_usd_per_h is None


def test_of_two_as_fast_the_cheaper_one_is_better():
    answer = pair(make_option("Dear", 5, 80), make_option("Cheap", 5, 50))
    assert answer.verdict.by == "both"
    assert answer.verdict.facts["faster"] == "B"
    assert (answer.p_a_sooner, answer.p_a_cheaper) == (0.5, 0.0)


def test_a_plan_beside_itself_is_the_same():
    answer = pair(FAST, FAST)
    assert isinstance(answer.verdict, about_answers.ComparedSame)
    assert (answer.p_a_cheaper, answer.p_a_sooner, answer.even_usd_per_h) == (0.5, 0.5, None)


def test_changing_the_script_counts_as_money_and_as_time():
    changed = make_option("Fast", 10, 140, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    answer = pair(changed, SLOW, change_usd=25.0)
    whole, plain = answer.whole
    assert (whole.usd, whole.time_s) == (165.0, 10.5 * HOUR_S)
    assert (whole.change_usd, whole.change_s, plain.change_usd) == (25.0, 1800.0, 0.0)
    assert whole.total_usd == pytest.approx(165 + 2 * 10.5)
    assert answer.even_usd_per_h == pytest.approx(65 / 9.5)


def test_only_one_that_does_the_job_is_taken_whatever_it_costs():
    out = removed(make_option("Tiny", 1, 1), RemovedByMemory)
    for answer, take in ((pair(SLOW, out), "A"), (pair(out, SLOW), "B")):
        assert isinstance(answer.verdict, about_answers.ComparedOne)
        assert answer.verdict.facts["take"] == take
        why = answer.verdict.facts["why"]
        assert why == sample(RemovedByMemory)


def test_of_two_that_fail_both_reasons_are_named():
    answer = pair(removed(FAST, RemovedByMemory), removed(SLOW, RemovedByDeadline))
    assert isinstance(answer.verdict, about_answers.ComparedNeither)
    assert answer.verdict.facts == {"why_a": sample(RemovedByMemory), "why_b": sample(RemovedByDeadline)}


def test_an_unknown_rent_is_never_the_cheaper_one():
    free = make_option("Own", 30, 0, plan=make_plan("Own", None))
    answer = pair(free, FAST)
    assert answer.verdict.by == "time-alone"
    assert (answer.verdict.facts["faster"], answer.verdict.facts["unpriced"]) == ("B", ["A"])
    assert answer.p_a_cheaper is answer.even_usd_per_h is None


def test_beside_what_is_free_there_is_no_ratio_but_an_amount():
    free = make_option("Own", 30, 0, plan=make_plan("Own", 0.0))
    facts = pair(free, FAST).verdict.facts
    assert (facts["times_in_cost"], facts["cost_differs_by_usd"]) == (None, 140.0)


def test_medians_stand_in_where_a_draw_never_ends():
    endless = Means(wait_s=0.0, time_s=math.inf, cost_usd=math.inf, counted_usd=math.inf)
    spot = make_option("Spot", 10, 140, expected=endless)
    answer = pair(spot, SLOW)
    assert [whole.time_s / HOUR_S for whole in answer.whole] == [10, 20]
    assert answer.verdict.facts["times_in_cost"] == pytest.approx(1.4)


def test_odds_follow_from_the_draws():
    near = make_option("Near", 20.0 * math.exp(0.05), 100, time_s=Quantiles(p50=20 * HOUR_S, p90=0.0))
    wide = judged(near, spread=1.0)
    answer = compared(judged(SLOW, spread=0.0), wide, make_job())
    assert answer.p_a_sooner == pytest.approx(0.5, abs=0.01)
