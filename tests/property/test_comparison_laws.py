"""Laws of two plans side by side, over random plans: the mirror, a plan beside itself, the recommendation."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.core.findings import Finding
from advisor.core.findings.about_answers import ComparedNeither, ComparedSame
from advisor.core.values import IterationEstimate, Job, Layout, Plan
from recommender.comparison import PlanComparison, compared
from recommender.outcome.evaluate import Judged
from recommender.ranking.value import total_usd, worth_for
from recommender.scaling_curve import scaling_curve
from tests.builders import make_gpu, make_job, make_trace
from tests.property.test_recommend_laws import plans_and_estimates
from tests.recommending import judge, recommend

PAIRS = plans_and_estimates().filter(lambda pair: len(pair[0]) > 1)
VALUES = st.sampled_from([0.01, 2.0, 500.0])
MIRRORED = {"A": "B", "B": "A"}


def judged_of(pair: tuple[list[Plan], list[IterationEstimate]], job: Job) -> list[Judged]:
    plans, estimates = pair
    gpus = {plan.gpu: make_gpu(plan.gpu) for plan in plans}
    by_key = {(plan.gpu, plan.layout): one for plan, one in zip(plans, estimates, strict=True)}
    return judge(make_trace(), by_key, gpus, plans, job)


def mirrored(verdict: Finding) -> dict[str, object]:
    """The facts of a verdict as they are where A is called B."""
    facts = dict(verdict.facts)
    if isinstance(verdict, ComparedNeither):
        return {"why_a": facts["why_b"], "why_b": facts["why_a"]}
    return {name: MIRRORED.get(fact, fact) if isinstance(fact, str) else fact for name, fact in facts.items()}


def both_ways(one: Judged, other: Judged, job: Job) -> tuple[PlanComparison, PlanComparison]:
    return compared(one, other, job), compared(other, one, job)


@settings(max_examples=25)
@given(pair=PAIRS, value=VALUES)
def test_b_beside_a_is_the_mirror_of_a_beside_b(pair, value):
    job = make_job(value_of_time_usd_per_h=value)
    one, other = judged_of(pair, job)[:2]
    there, back = both_ways(one, other, job)
    assert (there.a, there.b, there.whole) == (back.b, back.a, back.whole[::-1])
    assert there.p_a_sooner + back.p_a_sooner == pytest.approx(1)
    assert (there.p_a_cheaper or 0) + (back.p_a_cheaper or 0) == pytest.approx(1)
    assert there.even_usd_per_h == (
        None if back.even_usd_per_h is None else pytest.approx(back.even_usd_per_h)
    )
    if there.times_as_fast is not None and back.times_as_fast is not None:
        assert there.times_as_fast.p10 * back.times_as_fast.p90 == pytest.approx(1)
    assert type(there.verdict) is type(back.verdict)
    if not isinstance(there.verdict, ComparedSame):
        for name, fact in mirrored(back.verdict).items():
            ours = there.verdict.facts[name]
            assert ours == (pytest.approx(fact) if isinstance(fact, float) else fact), name


@settings(max_examples=12)
@given(pair=plans_and_estimates())
def test_a_plan_beside_itself_shows_no_difference(pair):
    job = make_job()
    one = judged_of(pair, job)[0]
    assume(one.option.feasible)
    itself = compared(one, one, job)
    assert isinstance(itself.verdict, ComparedSame)
    assert (itself.p_a_cheaper, itself.p_a_sooner, itself.even_usd_per_h) == (0.5, 0.5, None)


@settings(max_examples=25)
@given(pair=PAIRS, value=VALUES)
def test_figures_and_choice_are_those_of_the_recommendation(pair, value):
    """Of the same plans and seed: two of them alone lead to what they lead to among all."""
    job = make_job(value_of_time_usd_per_h=value)
    plans, estimates = pair
    one, other = judged_of((plans[:2], estimates[:2]), job)
    answer = compared(one, other, job)
    gpus = {plan.gpu: make_gpu(plan.gpu) for plan in plans}
    by_key = {(plan.gpu, plan.layout): one for plan, one in zip(plans, estimates, strict=True)}
    ranked = recommend(make_trace(), by_key, gpus, plans, job)
    for option in (answer.a, answer.b):
        same = ranked.option(option.plan.id)
        assert (same.time_s, same.cost_usd, same.expected) == (
            option.time_s,
            option.cost_usd,
            option.expected,
        )
    taken = {"A": answer.a, "B": answer.b}.get(str(answer.verdict.facts.get("take")))
    if taken is not None and getattr(answer.verdict, "by", None) == "trade":
        other = answer.b if taken is answer.a else answer.a
        assert total_usd(taken, worth_for(job)) <= total_usd(other, worth_for(job)) * (1 + 1e-9)


@settings(max_examples=20)
@given(pair=plans_and_estimates(), low=st.floats(0.01, 10), more=st.floats(1, 1000))
def test_whoever_pays_more_for_an_hour_never_stops_earlier(pair, low, more):
    """The plans stand for numbers of one GPU, each faster than the smaller one or not."""
    job = make_job()
    options = [
        replace(item.option, plan=replace(item.option.plan, layout=Layout(gpus_per_node=number)))
        for number, item in enumerate(judged_of(pair, job), start=1)
    ]
    cheap, dear = (
        scaling_curve(options, worth_for(make_job(value_of_time_usd_per_h=value)))
        for value in (low, low * more)
    )
    assume(cheap.best is not None)
    by_id = {option.plan.id: option for option in options}
    before, after = by_id[str(cheap.best)], by_id[str(dear.best)]
    assert after.expected.time_s <= before.expected.time_s * (1 + 1e-9)
