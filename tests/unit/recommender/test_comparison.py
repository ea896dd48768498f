"""Two plans side by side: what decides, by figures one can follow."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from advisor.core.errors import InputError
from advisor.core.findings import about_answers
from advisor.core.findings.about_answers import (
    ChangeCosts,
    ChangeMoves,
    ChangeRulesOut,
    CurveOfNone,
    CurveStops,
)
from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import (
    RateUnknown,
    RemovedByDeadline,
    RemovedByMemory,
    RemovedByQuota,
    Unknown,
    WaitAssumed,
    WaitOfStarts,
)
from advisor.core.findings.about_traces import LengthUnknown, ProfileLacks
from advisor.core.units import HOUR_S
from advisor.core.values import (
    Interval,
    Job,
    Market,
    Means,
    Option,
    Plan,
    Quantiles,
    Recommendation,
    Scaling,
    Tier,
    Trace,
)
from advisor.report.words import sentence, sentences
from recommender.comparison import Measure, PlanComparison, change_findings, compared, script_change
from recommender.outcome.draws import SHARED_ERROR, log_normal, make_draws, ratio_of
from recommender.outcome.evaluate import Judged
from recommender.queue.waits import assumed_wait
from recommender.ranking.value import Worth
from recommender.scaling_curve import curve_of, scaling_curve
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_plan, make_trace
from tests.findings import said, sample
from tests.recommendations import make_option, removed
from tests.recommending import make_script, recommend


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
    assert answer.verdict.facts["by"] == "trade"
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
    assert (of_both.facts["by"], of_both.facts["cost_differs_by_usd"]) == ("both", pytest.approx(35.0))
    # Medians may differ the other way: preemptions are rare and long.
    assert sentence(of_both).startswith("A is on average ")
    assert "cheaper than B ($25.00 to change the script for B counted): take A" in sentence(of_both)


def test_what_is_faster_and_cheaper_needs_no_worth_of_an_hour():
    answer = pair(SLOW, make_option("Best", 5, 50))
    assert answer.verdict.facts["by"] == "both"
    facts = answer.verdict.facts
    assert (facts["faster"], facts["times_faster"], facts["times_in_cost"]) == ("B", 4.0, 2.0)
    assert answer.even_usd_per_h is None


def test_of_two_as_fast_the_cheaper_one_is_better():
    answer = pair(make_option("Dear", 5, 80), make_option("Cheap", 5, 50))
    assert answer.verdict.facts["by"] == "both"
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
    assert answer.verdict.facts["by"] == "time-alone"
    assert (answer.verdict.facts["faster"], answer.verdict.facts["unpriced"]) == ("B", ["A"])
    assert answer.verdict.facts["cost_differs_by_usd"] is answer.verdict.facts["change_usd"] is None
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


def answer_of(*plans: Plan, trace: Trace | None = None, job: Job | None = None) -> Recommendation:
    estimates = {(plan.gpu, plan.layout): make_estimate(plan.gpu, num_gpus=plan.num_gpus) for plan in plans}
    gpus = {plan.gpu: make_gpu(plan.gpu) for plan in plans}
    trace, job = trace or make_trace(), job or make_job()
    return recommend(trace, estimates, gpus, plans, job)


def warnings(*plans: Plan, trace: Trace | None = None, job: Job | None = None) -> str:
    return said(answer_of(*plans, trace=trace, job=job).warnings)


def recommended(*plans: Plan, trace: Trace, job: Job) -> str | None:
    return answer_of(*plans, trace=trace, job=job).recommended


def test_a_length_that_was_given_is_not_asked_for():
    trace = make_trace(
        warnings=(sample(LengthUnknown, why="no-loader"), sample(ProfileLacks, what="dtypes")),
        iterations_per_epoch=9,
    )
    job = make_job(iterations=None, epochs=2.0)
    plan = make_plan("A")
    assert "give --iterations" in warnings(plan, trace=trace, job=job)
    for told in (make_job(iterations=10), replace(job, iterations_per_epoch=10)):
        text = warnings(plan, trace=trace, job=told)
        assert "give --iterations" not in text
        assert "no dtypes" in text


def test_gpus_that_may_not_share_a_step_neither_win_nor_pass_in_silence():
    trace = make_trace(batch_size=None, warnings=(sample(LengthUnknown, why="no-loader"),))
    one, eight = make_plan("A", 1.0), make_plan("B", 4.0, num_gpus=8)
    assert "no DataLoader shows how several GPUs would share a step" in warnings(one, eight, trace=trace)
    assert "DataLoader" not in warnings(one, trace=trace)
    assert "DataLoader" not in warnings(one, eight, trace=trace, job=make_job(scaling=Scaling.WEAK))
    long = {"iterations": 10**6, "change_usd": 0.0}
    assert recommended(one, eight, trace=trace, job=make_job(**long)) == one.id
    assert recommended(one, eight, trace=trace, job=make_job(**long, scaling=Scaling.WEAK)) == eight.id


def test_options_without_a_rate_of_their_own_are_counted():
    unknown = (sample(RateUnknown), sample(RateUnknown))
    text = warnings(make_plan("A", notes=unknown), make_plan("B"), make_plan("C", notes=unknown[:1]))
    assert "2 of 3 options pay the dearest known rate" in text


def test_what_costs_nothing_is_known_and_no_reason_to_warn():
    text = warnings(make_plan("A"), make_plan("B", 0.5, tier=Tier.CLUSTER))
    assert "dearest" not in text
    assert "hourly cost" not in text


def test_assumed_waits_are_counted():
    assumed, measured = sample(WaitAssumed), sample(WaitOfStarts)
    plans = [make_plan("A", notes=(assumed,)), make_plan("B", notes=(measured,)), make_plan("C")]
    assert "assumed for 1 of 3 rented options" in warnings(*plans)
    assert "the wait for a machine" not in warnings(*plans[1:])


def test_each_unknown_wait_and_cost_is_told():
    assumed_s, _ = assumed_wait(1, None)
    text = warnings(make_plan("B", None, tier=Tier.CLUSTER, wait_s=assumed_s))
    assert "no hourly cost is configured for lab" in text
    assert "no wait is configured for lab" in text


WORTH = Worth(hour_usd=2.0)


def of(num_gpus: int, hours: float, usd: float, *, region: str = "us-east-1", gpu: str = "L4") -> Option:
    plan = make_plan(
        gpu,
        num_gpus=num_gpus,
        id=f"aws/g{num_gpus}/{region}/spot",
        offer=make_offer(gpu, num_gpus=num_gpus, region=region, market=Market.SPOT),
    )
    return make_option(gpu, hours, usd, plan=plan)


def marginals(options: Sequence[Option]) -> list[float | None]:
    return [point.usd_per_h_saved for point in scaling_curve(options, WORTH).points]


CURVE = [of(1, 16, 10), of(2, 8, 11), of(4, 5, 20), of(8, 4, 60)]


def test_a_step_costs_its_dollars_over_the_hours_it_saves():
    assert marginals(CURVE) == [None, pytest.approx(1 / 8), pytest.approx(3.0), pytest.approx(40.0)]


def test_more_gpus_pay_up_to_the_least_of_cost_and_time():
    curve = scaling_curve(CURVE, WORTH)
    assert curve.best == "aws/g2/us-east-1/spot"
    assert isinstance(curve.verdict, CurveStops)
    assert curve.verdict.facts["next_num_gpus"] == 4
    assert curve.verdict.facts["usd_per_h_saved"] == pytest.approx(3.0)
    assert [point.total_usd for point in curve.points] == [42, 27, 30, 68]


def test_whoever_pays_more_for_an_hour_goes_further():
    best = [scaling_curve(CURVE, Worth(hour_usd=usd)).best for usd in (0.1, 2.0, 10.0, 100.0)]
    assert best == [CURVE[i].plan.id for i in (0, 1, 2, 3)]


def test_where_the_largest_pays_nothing_stops():
    curve = scaling_curve(CURVE[:2], WORTH)
    assert (curve.verdict.facts["next_num_gpus"], curve.best) == (None, CURVE[1].plan.id)
    assert sentence(curve.verdict).startswith("more GPUs pay up to the largest number there is")


def test_the_work_of_a_first_step_to_several_gpus_is_told_apart_from_their_rent():
    change = (sample(EditScript, what="wrap-in-ddp"),)
    wrapped = [replace(option, script_changes=change) for option in (of(2, 8, 11), of(4, 5, 20))]
    first = scaling_curve([of(1, 16, 10), wrapped[0]], Worth(hour_usd=2.0)).verdict
    # Half an hour and 25 dollars of work: 26 dollars for 7.5 hours.
    assert (type(first), first.facts["change_usd"]) == (CurveStops, 25.0)
    assert first.facts["usd_per_h_saved"] == pytest.approx(26 / 7.5)
    assert "costs $3.47 for each hour that it saves ($25.00 to change the script counted)," in sentence(first)
    second = scaling_curve(wrapped, Worth(hour_usd=9.0)).verdict
    assert (second.facts["next_num_gpus"], second.facts["change_usd"]) == (None, 0.0)
    assert "counted" not in sentence(second)


def test_a_step_that_saves_no_time_costs_without_end():
    slower = scaling_curve([of(1, 4, 10), of(8, 5, 60)], WORTH)
    assert slower.points[1].usd_per_h_saved == math.inf
    assert slower.verdict.facts["usd_per_h_saved"] is None


def test_what_does_not_do_the_job_is_no_step():
    options = [
        removed(of(1, 16, 10), RemovedByMemory),
        of(2, 8, 11),
        removed(of(4, 5, 20), RemovedByQuota),
        of(8, 4, 60),
    ]
    assert marginals(options) == [None, None, None, pytest.approx(49 / 4)]
    alone = scaling_curve(options[:3], WORTH)
    assert sentence(alone.verdict).startswith("there is one number alone that does the job")
    assert alone.best == options[1].plan.id
    none = scaling_curve(options[:1], WORTH)
    assert (type(none.verdict), none.best) == (CurveOfNone, None)


def test_of_one_number_the_best_place_counts():
    curve = scaling_curve([of(1, 16, 10), of(1, 16, 8, region="eu-west-1")], WORTH)
    assert [point.option.plan.id for point in curve.points] == ["aws/g1/eu-west-1/spot"]


def test_an_unknown_rent_has_no_end_of_paying():
    own = make_option("L4", 4, 0, plan=make_plan("L4", None, num_gpus=4))
    curve = scaling_curve([of(1, 16, 10), own], WORTH)
    assert (type(curve.verdict), curve.best) == (Unknown, None)


@pytest.mark.parametrize("name", ["L4", "L4:2", "aws/g2/us-east-1/spot", "g8", "aws L4 spot"])
def test_any_name_of_the_machine_means_all_its_numbers(name):
    dearer = make_option("L4", 1, 999, plan=make_plan("L4", num_gpus=16, id="aws/g16/us-east-1/on-demand"))
    others = [of(3, 1, 1, gpu="T4"), dearer]
    curve = curve_of(name, [*CURVE, *others], make_job())
    assert [point.option.plan.num_gpus for point in curve.points] == [1, 2, 4, 8]


def test_a_region_that_is_named_is_kept():
    elsewhere = of(8, 4, 1, region="eu-west-1")
    curve = curve_of("L4 us-east-1", [*CURVE, elsewhere], make_job())
    assert {point.option.plan.offer.region for point in curve.points if point.option.plan.offer} == {
        "us-east-1"
    }
    assert curve_of("L4", [*CURVE, elsewhere], make_job()).points[-1].option is elsewhere


def test_a_name_of_no_plan_is_refused():
    with pytest.raises(InputError, match="no plan has 'T4'"):
        curve_of("T4", CURVE, make_job())


def answer(*options, recommended="first"):
    chosen = next((o.plan.id for o in options if o.feasible), None) if recommended == "first" else recommended
    return Recommendation(
        script=make_script(),
        job=make_job(),
        options=options,
        frontier=(),
        recommended=chosen,
        rule=None,
        warnings=(),
    )


def with_memory(option, needed_bytes, fits):
    changed = make_estimate(
        option.plan.gpu, memory_bytes=needed_bytes, memory_limit_bytes=needed_bytes if fits else 1
    )
    return replace(option, estimate=changed)


def texts(change):
    return "\n".join(sentences(change_findings(change)))


def test_the_same_machine_is_compared():
    change = script_change(
        answer(make_option("A", 10, 100), make_option("B", 10, 50), recommended="A"),
        answer(make_option("A", 12, 123), make_option("B", 10, 20), recommended="B"),
    )
    assert (change.now.plan.id, change.measure) == ("A", Measure.COST)
    assert change.relative == pytest.approx(0.23)
    assert [type(one) for one in change_findings(change)] == [ChangeCosts, ChangeMoves]
    assert "+$23.00 (+23 %) per run" in texts(change)
    assert "$100.00 in 10 h -> $123.00 in 12 h" in texts(change)


def test_a_machine_that_no_longer_does_it_is_replaced_and_the_reason_is_named():
    too_large = removed(make_option("A", 12, 80), RemovedByMemory)
    change = script_change(
        answer(make_option("A", 10, 100), make_option("B", 10, 150), recommended="A"),
        answer(too_large, make_option("B", 10, 160), recommended="B"),
    )
    assert change.now.plan.id == "B"
    assert change.relative == pytest.approx(0.6)
    assert isinstance(next(change_findings(change)), ChangeRulesOut)
    assert "no longer does the job (does not fit: needs 20 GiB" in texts(change)


def test_nothing_does_it_any_more():
    change = script_change(
        answer(make_option("A", 1, 1)), answer(removed(make_option("A", 1, 1), RemovedByMemory))
    )
    assert (change.head, change.relative) == (None, None)
    assert "after the change no machine does the job; before," in texts(change)


def test_nothing_did_it_before():
    change = script_change(
        answer(removed(make_option("A", 1, 1), RemovedByMemory)), answer(make_option("A", 1, 1))
    )
    assert (change.base, change.same, change.relative) == (None, None, None)
    assert "before the change no machine did the job; now" in texts(change)


def test_nothing_before_and_nothing_after():
    none = answer(removed(make_option("A", 1, 1), RemovedByMemory))
    assert "no machine did the job before either" in texts(script_change(none, none))


def test_without_a_price_time_is_compared():
    own = make_plan("A", None)
    change = script_change(
        answer(make_option("A", 10, 0, plan=own)), answer(make_option("A", 15, 0, plan=own))
    )
    assert (change.measure, change.relative) == (Measure.TIME, pytest.approx(0.5))
    assert "+5 h 0 min (+50 %)" in texts(change) or "+5 h (+50 %)" in texts(change)
    assert "at an unknown cost" in texts(change)


def test_memory_says_which_gpus_it_rules_out_and_in():
    base = [make_option("A", 1, 1), make_option("B", 1, 2), removed(make_option("C", 1, 3), RemovedByMemory)]
    head = [make_option("A", 1, 1), removed(make_option("B", 1, 2), RemovedByMemory), make_option("C", 1, 3)]
    needs = zip(base, head, [(True, True), (True, False), (False, True)], strict=True)
    pairs = [(with_memory(b, 10 * 2**30, x), with_memory(h, 12 * 2**30, y)) for b, h, (x, y) in needs]
    change = script_change(answer(*(b for b, _ in pairs)), answer(*(h for _, h in pairs)))
    assert texts(change).splitlines()[1] == "memory of a GPU 10 GiB -> 12 GiB: no longer fits B; now fits C"


def test_machines_the_chosen_first_then_those_ruled_out_then_by_cost():
    head = [make_option(name, 1, usd) for name, usd in (("A", 9), ("B", 1), ("C", 3))]
    base = [head[0], head[1], removed(head[2], RemovedByMemory)]
    change = script_change(answer(*base, recommended="A"), answer(*head, recommended="A"))
    assert [machine.gpu for machine in change.machines] == ["A", "C", "B"]


def test_a_gpu_has_one_row_unless_it_is_chosen_twice():
    plans = {n: make_plan("A", num_gpus=n, id=f"A{n}") for n in (1, 2, 4, 8)}
    options = [make_option("A", 1, n, plan=plan) for n, plan in plans.items()]
    change = script_change(answer(*options, recommended="A8"), answer(*options, recommended="A4"))
    assert [machine.num_gpus for machine in change.machines] == [4, 8]


def test_every_gpu_that_it_rules_out_is_named():
    base = [with_memory(make_option(f"G{i:02}", 1, i + 1), 2**30, True) for i in range(20)]
    head = [
        with_memory(removed(make_option(f"G{i:02}", 1, i + 1), RemovedByMemory), 2**31, False)
        for i in range(20)
    ]
    text = texts(script_change(answer(*base), answer(*head)))
    assert all(f"G{i:02}" in text for i in range(20))


def test_what_costs_nothing_is_no_unknown_cost():
    own = make_plan("A", 0.0)
    change = script_change(
        answer(make_option("A", 10, 0, plan=own)), answer(make_option("A", 15, 0, plan=own))
    )
    assert change.measure is Measure.TIME
    assert "$0.00 in 10 h" in texts(change)
    assert "unknown" not in texts(change)


usd = st.floats(0.01, 1e6)


@given(before=usd, after=usd)
def test_there_and_back_again_is_no_change(before, after):
    forth = script_change(answer(make_option("A", 1, before)), answer(make_option("A", 1, after))).relative
    back = script_change(answer(make_option("A", 1, after)), answer(make_option("A", 1, before))).relative
    assert (1 + forth) * (1 + back) == pytest.approx(1)


@given(costs=st.lists(usd, min_size=1, max_size=5))
def test_no_change_costs_nothing(costs):
    same = answer(*(make_option(f"G{i}", 1, cost) for i, cost in enumerate(costs)))
    change = script_change(same, same)
    assert change.relative == 0
    assert "(+0.0 %)" in texts(change)
