"""Named picks, risk as a third axis, and what an hour is worth."""

import math
from dataclasses import replace

import pytest

from advisor.core import values
from advisor.core.errors import InputError
from advisor.core.findings.about_answers import (
    BestOfTotal,
    Cheapest,
    ObjectiveOfPolicy,
    SummaryChoice,
    SummaryDoubt,
)
from advisor.core.findings.about_estimates import EditScript
from advisor.core.values import Job, Market, Merit, Pick, PickName, Tier
from advisor.report.words import sentence
from recommender.ranking.choice import (
    best_of,
    cheapest,
    fastest,
    picked_by,
    picks_of,
    recommended_of,
    risk_key,
    safest,
    shortlist,
)
from recommender.ranking.frontier import frontier
from recommender.ranking.value import Worth
from recommender.ranking.what_tips import summary_of
from tests.builders import HOUR_S, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import quoted, said
from tests.recommendations import guessed, make_option
from tests.recommending import make_script, recommend


def answer(
    *given: tuple[values.Plan, float | values.Interval], job: values.Job | None = None
) -> values.Recommendation:
    """Plans with the iteration time of each; a job of 1,000 iterations unless said otherwise."""
    return recommend(
        make_trace(),
        {(p.gpu, p.layout): make_estimate(p.gpu, t, num_gpus=p.num_gpus) for p, t in given},
        {plan.gpu: make_gpu(plan.gpu, compute_capability="8.0") for plan, _ in given},
        [plan for plan, _ in given],
        job or make_job(iterations=1000),
    )


def picks(recommendation: values.Recommendation) -> dict[values.PickName, values.Pick]:
    return {pick.name: pick for pick in recommendation.picks}


def wide(seconds: float, factor: float = 1.5) -> values.Interval:
    return values.Interval(p10=seconds / factor, p50=seconds, p90=seconds * factor)


FAST = (make_plan("FAST", 40.0), 3.6)  # 1 h, 40 dollars
VALUE = (make_plan("VALUE", 5.0), 7.2)  # 2 h, 10 dollars
CHEAP = (make_plan("CHEAP", 0.09), wide(360.0))  # 100 h, 9 dollars


def test_each_pick_has_its_plan_and_its_reason():
    by_name = picks(answer(FAST, VALUE, CHEAP))
    assert {name: pick.plan_id for name, pick in by_name.items()} == {
        "cheapest": "CHEAP",
        "fastest": "FAST",
        "best-value": "VALUE",
        "safest": "VALUE",
    }
    assert sentence(by_name[values.PickName.CHEAPEST].reason) == "the least median cost"
    assert sentence(by_name[values.PickName.FASTEST].reason) == "the least median time"
    best = sentence(by_name[values.PickName.BEST_VALUE].reason)
    assert "at $2/h, work on the script counted: $10.00 and 2 h" in best
    assert (
        sentence(by_name[values.PickName.SAFEST].reason) == "is not preempted, the least cost at p90: $10.00"
    )


@pytest.mark.parametrize("name", values.PickName)
def test_any_pick_can_be_asked_for(name):
    ranked = answer(FAST, VALUE, CHEAP, job=make_job(iterations=1000, pick=name))
    assert ranked.recommended == picks(ranked)[name].plan_id
    assert ranked.rule is not None
    assert sentence(ranked.rule) == f"the policy's objective: {sentence(picks(ranked)[name].reason)}"


def test_what_is_slower_and_dearer_in_the_median_may_be_expected_to_be_neither():
    """A long tail is paid for by whoever takes it."""
    tail, even = (make_plan("TAIL", 5.0), wide(7.2, factor=4.0)), (make_plan("EVEN", 5.0), 7.3)
    recommendation = answer(tail, even)
    assert recommendation.frontier == ("TAIL",)
    assert recommendation.recommended == "EVEN"


def test_an_unknown_cost_is_said_where_it_is_picked():
    recommendation = answer((make_plan("FREE", None, tier=values.Tier.CLUSTER), 3.6))
    for name in (values.PickName.CHEAPEST, values.PickName.SAFEST):
        assert "unknown and counts as 0" in sentence(picks(recommendation)[name].reason)
    assert recommendation.rule is not None
    assert "unknown" in sentence(recommendation.rule)


def test_nothing_feasible_has_no_picks():
    assert answer(FAST, job=make_job(iterations=1000, budget_usd=1.0)).picks == ()


def option_like(**changes: object) -> values.Option:
    option = answer(FAST).options[0]
    facts: dict[str, object] = {
        "time_s": values.Quantiles(p50=10.0, p90=12.0), "cost_usd": values.Quantiles(p50=10.0, p90=12.0),
        "p_within_budget": 1.0, "p_within_deadline": 1.0,
    }  # fmt: skip
    return replace(option, **(facts | changes))  # type: ignore[arg-type]


def spot(option: values.Option) -> values.Option:
    return replace(option, plan=make_plan("FAST", 40.0, market=values.Market.SPOT))


@pytest.mark.parametrize(
    ("safer", "riskier"),
    [
        # The worse of both odds counts before anything else.
        (option_like(p_within_budget=0.95), option_like(p_within_deadline=0.92)),
        (spot(option_like(cost_usd=values.Quantiles(p50=10, p90=30))), option_like(p_within_budget=0.9)),
        # Then preemption.
        (option_like(), spot(option_like())),
        (option_like(cost_usd=values.Quantiles(p50=10, p90=13)), spot(option_like())),
        # Then the cost at p90, whatever the median is.
        (option_like(), option_like(cost_usd=values.Quantiles(p50=9, p90=13))),
        (spot(option_like()), spot(option_like(cost_usd=values.Quantiles(p50=9, p90=13)))),
    ],
)
def test_what_is_safer(safer, riskier):
    assert risk_key(safer) < risk_key(riskier)
    assert safest([riskier, safer]) is safer


def test_of_equally_safe_ones_the_faster_at_p90():
    slow = option_like(time_s=values.Quantiles(p50=9, p90=13))
    assert safest([slow, option_like()]).time_s.p90 == 12.0


def test_less_than_a_hundredth_is_luck_of_the_draws():
    one, other = option_like(p_within_budget=0.999), option_like(p_within_budget=1.0)
    assert risk_key(one) == risk_key(other)


def test_odds_that_nobody_asked_for_are_no_risk():
    assert risk_key(option_like(p_within_budget=None, p_within_deadline=None))[0] == 0
    assert risk_key(option_like(p_within_budget=None, p_within_deadline=0.93))[0] == 0.07


SURE = (make_plan("SURE", 6.0), 7.3)  # a little slower and dearer than UNSURE, but certain
UNSURE = (make_plan("UNSURE", 5.0), wide(7.2))


def test_risk_keeps_what_is_dominated_but_safer():
    assert answer(UNSURE, SURE).frontier == ("UNSURE",)
    recommendation = answer(UNSURE, SURE, job=make_job(iterations=1000, risk_counts=True))
    assert recommendation.frontier == ("UNSURE", "SURE")
    assert recommendation.recommended == "UNSURE"
    assert picks(recommendation)[values.PickName.SAFEST].plan_id == "SURE"
    assert picks(recommendation)[values.PickName.CHEAPEST].plan_id == "UNSURE"


def test_what_risk_keeps_is_still_called_what_it_is():
    """A tie of the frontier of time and cost, and no rival of what is slower and dearer."""
    recommendation = answer(UNSURE, SURE, job=make_job(iterations=1000, risk_counts=True))
    assert next(o for o in recommendation.options if o.plan.id == "UNSURE").tie_with is None
    far = (make_plan("FAR", 5.0), 8.5)
    wider = answer(UNSURE, far, job=make_job(iterations=1000, risk_counts=True))
    assert wider.frontier == ("UNSURE", "FAR")
    near = "near tie in time: UNSURE costs no more and is done sooner with probability"
    assert near in reasons(wider, "FAR")
    assert "near tie" not in reasons(wider, "UNSURE")


def test_of_equal_points_risk_removes_the_riskier_and_nothing_else():
    strict = answer(FAST, VALUE, CHEAP, UNSURE, SURE)
    assert set(strict.frontier) == {"FAST", "VALUE", "UNSURE", "CHEAP"}
    wider = answer(FAST, VALUE, CHEAP, UNSURE, SURE, job=make_job(iterations=1000, risk_counts=True))
    assert set(wider.frontier) == {"FAST", "VALUE", "CHEAP"}
    assert wider.recommended == "VALUE"


@pytest.mark.parametrize(("usd_per_h", "recommended"), [(0.001, "CHEAP"), (1.0, "VALUE"), (100.0, "FAST")])
def test_the_more_an_hour_is_worth_the_faster_is_recommended(usd_per_h, recommended):
    job = make_job(iterations=1000, value_of_time_usd_per_h=usd_per_h)
    recommendation = answer(FAST, VALUE, (make_plan("CHEAP", 0.09), 360.0), job=job)
    assert recommendation.recommended == recommended
    assert recommendation.rule is not None
    assert "on average" in sentence(recommendation.rule)
    assert f"${usd_per_h:g}/h" in sentence(recommendation.rule)


def test_means_count_the_tail():
    """Equal medians; the one with the longer tail has the greater mean."""
    job = make_job(iterations=1000, value_of_time_usd_per_h=10.0)
    tail = (make_plan("TAIL", 1.0), values.Interval(p10=7.2, p50=7.2, p90=40.0))
    assert answer(tail, (make_plan("EVEN", 1.0), 7.2), job=job).recommended == "EVEN"


@pytest.mark.parametrize("usd_per_h", [-1.0, float("nan"), float("inf")])
def test_an_hour_must_be_worth_something(usd_per_h):
    with pytest.raises(InputError, match="value_of_time_usd_per_h must be a finite number of at least 0"):
        answer(FAST, job=make_job(value_of_time_usd_per_h=usd_per_h))


QUEUED = make_plan("LAB", 0.5, tier=values.Tier.CLUSTER, wait_s=values.Quantiles(p50=HOUR_S, p90=4 * HOUR_S))


def reasons(recommendation: values.Recommendation, plan_id: str) -> str:
    return said(next(o for o in recommendation.options if o.plan.id == plan_id).reasons)


def test_only_the_best_rented_plan_and_the_clusters_are_told_of_the_wait():
    job = make_job(iterations=1000, value_of_time_usd_per_h=3.0)
    recommendation = answer(FAST, VALUE, (QUEUED, 7.2), job=job)
    assert "once the wait exceeds" in reasons(recommendation, "VALUE")
    assert "once the wait exceeds" in reasons(recommendation, "LAB")
    assert "wait exceeds" not in reasons(recommendation, "FAST")
    assert "at $2/h" in reasons(answer(FAST, (QUEUED, 7.2)), "LAB")


def test_renting_may_pay_without_any_wait():
    job = make_job(iterations=1000, value_of_time_usd_per_h=100.0)
    assert "pays even without a wait at $100/h" in reasons(answer(FAST, (QUEUED, 36.0), job=job), "LAB")


def test_an_unknown_wait_is_compared_all_the_same():
    job = make_job(iterations=1000, value_of_time_usd_per_h=3.0)
    recommendation = answer(VALUE, (replace(QUEUED, wait_s=None), 7.2), job=job)
    assert "the wait is unknown" in reasons(recommendation, "LAB")


@pytest.mark.parametrize(("tier", "is_rented"), [(Tier.CLOUD, True), (Tier.LOCAL, False)])
def test_what_is_rented_is_said_to_be(tier, is_rented):
    option = replace(
        make_option("L4", 1.0, 1.0), plan=make_plan("L4", None if tier is Tier.LOCAL else 2.0, tier=tier)
    )
    choice, cost, doubt = summary_of(option, Job(epochs=1), script=make_script())
    assert (type(choice), choice.facts["is_rented"]) == (SummaryChoice, is_rented)
    assert cost.facts["is_cost_known"] is is_rented
    assert isinstance(doubt, SummaryDoubt)


@pytest.mark.parametrize(
    ("points", "kept"),
    [
        ([], []),
        ([(1, 1)], [0]),
        ([(2, 2), (1, 1)], [1]),
        ([(1, 2), (1, 1)], [1]),  # equally fast: the cheaper
        ([(2, 1), (1, 1)], [1]),  # equally cheap: the faster
        ([(1, 1), (1, 1)], [0, 1]),
        ([(3, 1), (2, 2), (1, 3)], [2, 1, 0]),
        ([(1, math.inf), (math.inf, 1)], []),
        ([(math.nan, 1), (1, 1)], [1]),
        ([(0, 0), (1, 0), (0, 1)], [0]),
    ],
)
def test_the_frontier_by_time(points, kept):
    assert frontier(points) == kept


def test_equal_points_stay_in_the_order_given():
    assert frontier([(2, 1), (1, 2), (2, 1), (1, 2)]) == [1, 3, 0, 2]


BEST = make_option("L40S", hours=4.0, usd=20.0)


@pytest.mark.parametrize(
    ("hours", "usd", "is_shown"),
    [(5.0, 25.0, False), (4.0, 20.0, False), (5.0, 19.0, True), (3.0, 25.0, True)],
)
def test_work_that_brings_neither_time_nor_money_is_not_shown(hours, usd, is_shown):
    changes = (EditScript(what="wrap-in-ddp"),)
    other = make_option("H100-SXM-80GB", hours=hours, usd=usd, script_changes=changes)
    rows = shortlist(
        [BEST, other], (), make_job(epochs=1.0), best_id=BEST.plan.id, as_it_is=BEST, with_work=other
    )
    assert [Merit.WITH_WORK in row.merits for row in rows] == [False] + [True] * is_shown


@pytest.mark.parametrize(
    ("best", "other", "is_shown"),
    [(0.90, 0.99, True), (0.99, 0.99, False), (0.985, 0.99, False), (None, None, False)],
)
def test_a_safest_row_is_safer(best, other, is_shown):
    first = make_option("L40S", hours=4.0, usd=20.0, p_within_budget=best)
    second = make_option("A10G", hours=9.0, usd=25.0, p_within_budget=other)
    picks = [Pick(name=PickName.SAFEST, plan_id=second.plan.id, reason=quoted("why"))]
    job = make_job(epochs=1.0, budget_usd=30.0)
    rows = shortlist([first, second], picks, job, best_id=first.plan.id, as_it_is=first)
    assert (Merit.SAFEST in [merit for row in rows for merit in row.merits]) == is_shown


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
