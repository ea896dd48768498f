"""Laws of scarcity: what is rarer, or goes away more often, is never the better for it."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import Market, Plan, Quantiles, Recommendation, StartWait
from recommender.outcome.draws import Array, make_draws
from recommender.outcome.outcomes import DrawnRun, costs_of, runs_of
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, terms_of_plans
from recommender.outcome.spot_history import Watched
from recommender.plans.candidates import plans_of_offers
from recommender.plans.extras import CloudTerms
from tests import builders
from tests.recommending import recommend

DRAWS = make_draws(np.random.default_rng(1))
GPUS = st.sampled_from([*load_gpus(), "a GPU of tomorrow"])
MARKETS = st.sampled_from(list(Market))
SEEN = st.builds(
    lambda up, down, losses: Watched(up_h=up, down_h=down, num_losses=losses, num_outages=losses),
    st.floats(0.1, 1e4),
    st.floats(0, 1e4),
    st.integers(0, 100),
)
WAITS = st.builds(
    lambda p, p50, factor: StartWait.of(
        p_at_once=p, at_once_s=60.0, later_p50_s=p50, later_p90_s=p50 * factor
    ),
    st.floats(0.1, 0.95),
    st.floats(10, 1e5),
    st.floats(1.1, 50),
)


def decide(plans: list[Plan], hours: float, **limits: float) -> Recommendation:
    gpus = sorted({plan.gpu for plan in plans})
    return recommend(
        builders.make_trace(),
        {(gpu, builders.ONE_GPU): builders.make_estimate(gpu, hours * 0.036) for gpu in gpus},
        {gpu: builders.make_gpu(gpu) for gpu in gpus},
        plans,
        builders.make_job(**limits),
        rng=np.random.default_rng(1),
    )


def run_and_usd(plan: Plan, terms: SpotTerms, work_h: float) -> tuple[DrawnRun, Array]:
    runs = runs_of([plan], [np.full_like(DRAWS.wait, work_h * 3600)], [terms], DRAWS)
    return runs[0], costs_of([plan], runs, DRAWS).usd[0]


@given(GPUS, MARKETS, st.sampled_from([1, 2, 8]), st.none() | SEEN)
def test_no_rented_machine_is_there_in_no_time(gpu, market, num_gpus, seen):
    offer = builders.make_offer(gpu, market=market, num_gpus=num_gpus)
    history = {} if seen is None else {"": seen}
    (plan,) = plans_of_offers([offer], terms=CloudTerms(startup_s=0.0, history=history))
    assert 0 < plan.wait_s.p50 <= plan.wait_s.p90


@given(GPUS, st.sampled_from([1, 8]), st.floats(0, 1e4))
def test_what_is_configured_or_measured_takes_the_place_of_what_is_assumed(gpu, num_gpus, wait_s):
    given_wait = Quantiles(p50=wait_s, p90=2 * wait_s)
    offer = builders.make_offer(gpu, market=Market.SPOT, num_gpus=num_gpus)
    (plan,) = plans_of_offers([offer], terms=CloudTerms(startup_s=0.0, wait_s=given_wait))
    assert (plan.wait_s, plan.notes) == (given_wait, ())


@given(WAITS, st.floats(0.05, 0.95), st.floats(0.1, 50), st.floats(1, 100))
def test_rarer_never_ranks_better(often, share, work_h, deadline_h):
    rarely = StartWait.of(
        p_at_once=often.p_at_once * share,
        at_once_s=often.at_once_s,
        later_p50_s=often.later_p50_s,
        later_p90_s=often.later_p90_s,
    )
    plans = [
        builders.make_plan("X", 2.0, wait_s=rarely, id="rare"),
        builders.make_plan("X", 2.0, wait_s=often, id="often"),
    ]
    for limits in ({}, {"deadline_s": deadline_h * 3600}, {"value_of_time_usd_per_h": 3.0}):
        answer = decide(plans, work_h, **limits)
        rare, common = answer.options
        assert rare.time_s.p50 >= common.time_s.p50
        assert rare.time_s.p90 >= common.time_s.p90
        assert rare.cost_usd == common.cost_usd
        assert not (rare.feasible and not common.feasible)
        if rare.time_s.p50 > common.time_s.p50:
            assert answer.recommended != "rare"
        if limits.get("deadline_s") is not None:
            assert (rare.p_within_deadline or 0) <= (common.p_within_deadline or 0)


@settings(max_examples=50)
@given(st.floats(0.5, 100), st.floats(0.01, 1), st.floats(1, 5), st.floats(1, 6), st.floats(1, 4))
def test_more_preemptions_are_never_cheaper_or_faster_at_the_mean(work_h, rate, more, up, down):
    plan = builders.make_plan("X", 1.0, market=Market.SPOT)
    few = SpotTerms(preemptions_per_h=rate, dispersion_up=up, dispersion_down=down, most_per_h=5.0)
    many = replace(few, preemptions_per_h=rate * more)
    (seldom, usd), (often, more_usd) = (run_and_usd(plan, terms, work_h) for terms in (few, many))
    assert often.time_s.mean() >= seldom.time_s.mean() * (1 - 1e-3)
    assert more_usd.mean() >= usd.mean() * (1 - 1e-3)


@settings(max_examples=50)
@given(GPUS, st.sampled_from([1, 8]), st.floats(0.01, 200), st.none() | SEEN)
def test_p90_is_never_below_p50_and_spot_never_below_its_work(gpu, num_gpus, work_h, seen):
    plan = builders.make_plan(gpu, 1.0, num_gpus=num_gpus, market=Market.SPOT)
    terms = replace(ASSUMED_TERMS, history={} if seen is None else {"": seen})
    run, usd = run_and_usd(plan, terms_of_plans(terms, None)(plan), work_h)
    for drawn in (run.train_s, run.time_s, usd):
        quantiles = builders.quantiles_of(drawn)
        assert quantiles.p50 <= quantiles.p90
    assert run.train_s.min() >= work_h * 3600 * (1 - 1e-9)
    if seen is None:
        assert np.isfinite(usd.mean())


@given(GPUS, st.floats(0.001, 1))
def test_a_configured_rate_takes_the_place_of_what_is_assumed(gpu, rate):
    plan = builders.make_plan(gpu, market=Market.SPOT)
    configured = replace(
        ASSUMED_TERMS, preemptions_per_h=rate, assumed=ASSUMED_TERMS.assumed - {"preemptions_per_h"}
    )
    assert terms_of_plans(configured, None)(plan).preemptions_per_h == rate
    assert terms_of_plans(ASSUMED_TERMS, None)(plan).preemptions_per_h != ASSUMED_TERMS.preemptions_per_h
