"""Independence of irrelevant alternatives: what is not chosen decides nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core import values
from advisor.core.findings.about_options import Alike
from advisor.pricing.sources.protocol import DERIVED
from recommender.ranking.value import preference, worth_for
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_plan, make_trace
from tests.recommending import recommend

Case = tuple[values.Plan, values.IterationEstimate]
# Few distinct values, so that ties and near ties are common.
SECONDS = st.sampled_from([1.0, 1.01, 1.04, 1.3, 3.0]) | st.floats(1e-3, 10)
PRICES = st.sampled_from([0.5, 0.51, 4.0]) | st.floats(0.05, 100)


@st.composite
def cases(draw: st.DrawFn) -> list[Case]:
    return [_case(draw, f"G{i}") for i in range(draw(st.integers(2, 6)))]


def _case(draw: st.DrawFn, name: str) -> Case:
    p50, factor = draw(SECONDS), draw(st.sampled_from([1.0, 1.1, 2.0]))
    num_gpus = draw(st.sampled_from([1, 8]))
    tier = draw(st.sampled_from([values.Tier.CLOUD, values.Tier.CLOUD, values.Tier.CLUSTER]))
    usd_per_h = draw(PRICES | st.none()) if tier is values.Tier.CLUSTER else draw(PRICES)
    changes: dict[str, object] = {
        "wait_s": values.Quantiles(p50=draw(st.sampled_from([0.0, 600.0])), p90=7200.0),
        "startup_s": draw(st.sampled_from([0.0, 300.0])),
    }
    if tier is values.Tier.CLOUD:
        changes["offer"] = make_offer(
            name,
            usd_per_h,
            market=draw(st.sampled_from(values.Market)),
            source=draw(st.sampled_from(["a test", f"{DERIVED} a savings figure"])),
        )
    plan = make_plan(name, usd_per_h, num_gpus=num_gpus, tier=tier, id=name, **changes)
    interval = values.Interval(p10=p50 / factor, p50=p50, p90=p50 * factor)
    return plan, make_estimate(name, interval, num_gpus=num_gpus)


def decide(cases: list[Case], **job: object) -> values.Recommendation:
    return recommend(
        make_trace(),
        {(estimate.gpu, estimate.layout): estimate for _, estimate in cases},
        {plan.gpu: make_gpu(plan.gpu) for plan, _ in cases},
        [plan for plan, _ in cases],
        make_job(iterations=8000, **job),
        rng=np.random.default_rng(1),
    )


def without(cases: list[Case], plan_id: str) -> list[Case]:
    return [case for case in cases if case[0].id != plan_id]


LIMITS = st.sampled_from([{}, {"budget_usd": 50.0}, {"deadline_s": 9000.0}, {"risk_counts": True}])
CHANGES = st.none() | st.sampled_from([0.0, 1.0, 500.0])
VALUES = st.none() | st.sampled_from([0.01, 2.0, 300.0])


@settings(max_examples=25)
@given(cases(), LIMITS, VALUES, CHANGES, st.sampled_from([None, *values.PickName]))
def test_what_is_not_chosen_can_go_and_the_choice_stays(drawn, limits, value, change_usd, pick):
    job = {**limits, "value_of_time_usd_per_h": value, "change_usd": change_usd, "pick": pick}
    answer = decide(drawn, **job)
    for plan, _ in drawn:
        if plan.id != answer.recommended:
            assert decide(without(drawn, plan.id), **job).recommended == answer.recommended


@settings(max_examples=25)
@given(cases(), LIMITS)
def test_each_pick_stays_without_what_is_not_picked(drawn, limits):
    picks = {pick.name: pick for pick in decide(drawn, **limits).picks}
    for plan, _ in drawn:
        fewer = {pick.name: pick for pick in decide(without(drawn, plan.id), **limits).picks}
        for name, pick in picks.items():
            assert pick.plan_id == plan.id or fewer[name].plan_id == pick.plan_id


@settings(max_examples=25)
@given(cases(), st.sampled_from([0.01, 2.0, 300.0]), CHANGES)
def test_which_of_two_is_preferred_never_depends_on_a_third(drawn, value, change_usd):
    def order(some: list[Case]) -> list[str]:
        answer = decide(some, value_of_time_usd_per_h=value, change_usd=change_usd)
        options = [o for o in answer.options if o.feasible]
        return [o.plan.id for o in sorted(options, key=lambda o: preference(o, worth_for(answer.job)))]

    everything = order(drawn)
    for plan, _ in drawn:
        assert order(without(drawn, plan.id)) == [name for name in everything if name != plan.id]


@settings(max_examples=25)
@given(cases(), VALUES, st.sampled_from([None, *values.PickName]))
def test_folding_hides_neither_the_choice_nor_what_speaks_for_others(drawn, value, pick):
    answer = decide(drawn, value_of_time_usd_per_h=value, pick=pick)
    into = {option.plan.id: option.folded_into for option in answer.options}
    assert answer.recommended is None or into[answer.recommended] is None
    assert all(into[plan_id] is None for plan_id in into.values() if plan_id is not None)
    spoken_for = sum(
        reason.facts["num_options"]
        for o in answer.options
        for reason in o.reasons
        if isinstance(reason, Alike)
    )
    assert spoken_for == sum(plan_id is not None for plan_id in into.values())


@settings(max_examples=25)
@given(cases())
def test_without_what_is_folded_the_choice_and_the_rows_stay(drawn):
    answer = decide(drawn)
    hidden = {option.plan.id for option in answer.options if option.folded_into is not None}
    left = decide([case for case in drawn if case[0].id not in hidden]) if hidden else answer
    assert left.recommended == answer.recommended
    shown = {option.plan.id for option in left.options if option.folded_into is None}
    assert shown == {option.plan.id for option in answer.options} - hidden
