"""Laws of the recommendation over random plans: money adds up, and a larger budget never hurts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core import values
from recommender.outcome.draws import make_draws, waits
from recommender.outcome.spot import SpotTerms, makespan_and_billed_h
from recommender.ranking.choice import risk_key
from recommender.ranking.value import change_s
from tests.builders import make_estimate, make_gpu, make_job, make_plan, make_trace, quantiles_of
from tests.recommending import recommend

PRICES = st.floats(0.05, 100)
EXTRAS = st.just(0.0) | st.floats(0.01, 10)
SECONDS = st.floats(1e-3, 10)
# Below a second there is no wait to speak of.
WAITS = st.just(0.0) | st.floats(1, 3600)


@st.composite
def plans_and_estimates(draw: st.DrawFn) -> tuple[list[values.Plan], list[values.IterationEstimate]]:
    count = draw(st.integers(1, 6))
    plans, estimates = [], []
    for i in range(count):
        p50 = draw(SECONDS)
        factor = draw(st.floats(1, 2))
        interval = values.Interval(p10=p50 / factor, p50=p50, p90=p50 * factor)
        market = draw(st.sampled_from([values.Market.ON_DEMAND, values.Market.SPOT]))
        tier = draw(st.sampled_from([values.Tier.CLOUD, values.Tier.CLUSTER]))
        plans.append(
            make_plan(
                f"G{i}",
                draw(PRICES),
                market=market,
                tier=tier,
                startup_s=draw(st.floats(0, 3600)),
                wait_s=values.Quantiles(p50=draw(WAITS), p90=7200.0),
                billed_step_s=draw(st.sampled_from([0.0, 1.0, 3600.0])),
                storage_usd_per_h=draw(EXTRAS),
                egress_usd=draw(EXTRAS),
                transfer_usd=draw(EXTRAS),
            )
        )
        past = draw(
            st.none() | st.floats(0.05, 300).map(lambda p90: values.Interval(p10=0.01, p50=0.02, p90=p90))
        )
        if plans[i].offer is not None:
            plans[i] = replace(plans[i], offer=replace(plans[i].offer, spot_usd_per_h=past))
        fits = draw(st.booleans())
        estimates.append(make_estimate(f"G{i}", interval, memory_limit_bytes=16 * 2**30 if fits else 1))
    return plans, estimates


def decide(
    pair: tuple[list[values.Plan], list[values.IterationEstimate]], **limits: float | None
) -> values.Recommendation:
    plans, estimates = pair
    return recommend(
        make_trace(),
        {(e.gpu, e.layout): e for e in estimates},
        {e.gpu: make_gpu(e.gpu) for e in estimates},
        plans,
        make_job(**limits),
        rng=np.random.default_rng(1),
    )


def ready_s(option: values.Option) -> float:
    return option.expected.time_s + change_s(option)


@settings(max_examples=40)
@given(plans_and_estimates())
def test_the_breakdown_adds_up_to_the_cost(pair):
    for option in decide(pair).options:
        parts = sum(option.cost_breakdown_usd.values())
        assert parts == pytest.approx(option.cost_usd.p50, rel=2e-6)


@settings(max_examples=40)
@given(plans_and_estimates())
def test_cost_is_price_times_billed_time_and_extras_without_preemption(pair):
    for option in decide(pair).options:
        plan = option.plan
        if plan.offer is not None and plan.offer.market is values.Market.SPOT:
            continue
        run_s = plan.startup_s + option.train_s.p50
        step_s = plan.billed_step_s
        billed_s = math.ceil(run_s / step_s - 1e-6) * step_s if step_s else run_s
        extras = plan.storage_usd_per_h * run_s / 3600 + plan.egress_usd + plan.transfer_usd
        assert option.cost_usd.p50 == pytest.approx(plan.usd_per_h * billed_s / 3600 + extras, rel=1e-9)


@settings(max_examples=40)
@given(plans_and_estimates(), st.floats(1, 1e6), st.floats(1, 10))
def test_a_higher_budget_never_lowers_the_best_time(pair, budget, factor):
    def best_time_s(limit: float) -> float:
        feasible = [o for o in decide(pair, budget_usd=limit).options if o.feasible]
        return min((o.time_s.p50 for o in feasible), default=float("inf"))

    assert best_time_s(budget * factor) <= best_time_s(budget)


@settings(max_examples=40)
@given(plans_and_estimates())
def test_the_recommended_is_feasible_and_nothing_is_expected_to_beat_it(pair):
    answer = decide(pair)
    feasible = {option.plan.id: option for option in answer.options if option.feasible}
    assert (answer.recommended is None) == (not feasible)
    assert set(answer.frontier) <= set(feasible)
    if answer.recommended is not None:
        chosen = feasible[answer.recommended]
        for other in feasible.values():
            dearer = other.expected.counted_usd >= chosen.expected.counted_usd
            slower = ready_s(other) >= ready_s(chosen)
            assert dearer or slower


@settings(max_examples=40)
@given(plans_and_estimates())
def test_the_frontier_is_what_nothing_feasible_dominates(pair):
    answer = decide(pair)
    points = {o.plan.id: (o.time_s.p50, o.cost_usd.p50) for o in answer.options if o.feasible}
    expected = {
        name
        for name, (time_s, usd) in points.items()
        if not any(t <= time_s and c <= usd and (t, c) != (time_s, usd) for t, c in points.values())
    }
    assert set(answer.frontier) == expected


@settings(max_examples=40)
@given(plans_and_estimates())
def test_a_new_offer_changes_no_figure_of_the_others_and_removes_only_what_it_beats(pair):
    plans, estimates = pair
    if len(plans) < 2:
        return
    fewer, all_ = decide((plans[:-1], estimates)), decide(pair)
    new = all_.options[-1]
    for before, after in zip(fewer.options, all_.options[:-1], strict=True):
        assert (before.time_s, before.cost_usd, before.feasible) == (
            after.time_s,
            after.cost_usd,
            after.feasible,
        )
        if before.plan.id in fewer.frontier and before.plan.id not in all_.frontier:
            assert new.time_s.p50 <= after.time_s.p50
            assert new.cost_usd.p50 <= after.cost_usd.p50


@settings(max_examples=40)
@given(plans_and_estimates(), st.floats(1, 1e5))
def test_picks_are_the_best_of_the_feasible(pair, budget):
    answer = decide(pair, budget_usd=budget)
    feasible = {option.plan.id: option for option in answer.options if option.feasible}
    picks = {pick.name: feasible[pick.plan_id] for pick in answer.picks}
    assert bool(picks) == bool(feasible)
    if not picks:
        return
    assert set(picks) == set(values.PickName)
    assert picks[values.PickName.CHEAPEST].cost_usd.p50 == min(o.cost_usd.p50 for o in feasible.values())
    assert picks[values.PickName.FASTEST].time_s.p50 == min(o.time_s.p50 for o in feasible.values())
    assert picks[values.PickName.BEST_VALUE].plan.id == answer.recommended
    assert risk_key(picks[values.PickName.SAFEST]) == min(map(risk_key, feasible.values()))


@settings(max_examples=40)
@given(plans_and_estimates(), st.floats(0.01, 100), st.floats(1, 100))
def test_the_more_an_hour_is_worth_the_faster_the_choice(pair, value, factor):
    def hours(usd_per_h: float) -> float:
        chosen = decide(pair, value_of_time_usd_per_h=usd_per_h).chosen
        return 0.0 if chosen is None else ready_s(chosen)

    assert hours(value * factor) <= hours(value) * (1 + 1e-9)


@given(WAITS, st.floats(1, 100))
def test_waits_keep_their_quantiles(p50_s, factor):
    given_quantiles = values.Quantiles(p50=p50_s, p90=max(p50_s * factor, 1.0))
    draws = make_draws(np.random.default_rng(0))
    quantiles = quantiles_of(waits(given_quantiles, draws.wait))
    assert quantiles.p50 == pytest.approx(given_quantiles.p50, rel=1e-9)
    assert quantiles.p90 == pytest.approx(given_quantiles.p90, rel=1e-9)


@given(st.floats(0.01, 1000), st.floats(0, 2), st.floats(0.01, 3))
def test_preemption_only_ever_costs(work_h, rate, interval_h):
    terms = SpotTerms(preemptions_per_h=rate, checkpoint_interval_h=interval_h)
    makespan, billed = makespan_and_billed_h(np.array([work_h]), terms, rate_per_h=rate, reacquire_h=0.5)
    assert billed[0] >= work_h * (1 - 1e-6)
    assert makespan[0] >= billed[0] * (1 - 1e-6)


@given(st.floats(0.1, 100), st.floats(0.01, 1), st.floats(1, 5))
def test_more_preemptions_never_finish_sooner(work_h, rate, more):
    terms = SpotTerms(checkpoint_interval_h=0.5)
    work = np.array([work_h])
    fewer, _ = makespan_and_billed_h(work, terms, rate_per_h=rate, reacquire_h=0.5)
    many, _ = makespan_and_billed_h(work, terms, rate_per_h=rate * more, reacquire_h=0.5)
    assert many[0] >= fewer[0] * (1 - 1e-9)


def test_a_hopeless_spot_plan_is_infinite_and_never_on_the_frontier():
    estimates = [make_estimate("S", 1.0), make_estimate("D", 1.0)]
    plans = [make_plan("S", 0.01, market=values.Market.SPOT), make_plan("D", 1000.0)]
    answer = recommend(
        make_trace(),
        {(e.gpu, e.layout): e for e in estimates},
        {e.gpu: make_gpu(e.gpu) for e in estimates},
        plans,
        make_job(iterations=10**8),
        spot=SpotTerms(preemptions_per_h=5, checkpoint_interval_h=None),
    )
    assert answer.options[0].time_s.p50 == float("inf")
    assert answer.frontier == ("D",)
