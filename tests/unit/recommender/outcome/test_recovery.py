"""Laws of the recovery policies, by the draws that all of them share."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.values import Elsewhere, Market, Quantiles, Recovery, StartWait
from recommender.conditions import Conditions
from recommender.outcome.bill import cost_usd
from recommender.outcome.draws import make_draws
from recommender.outcome.outcomes import costs_of, runs_of
from recommender.outcome.spot import SpotTerms, leaving, suits, under
from recommender.ranking.checkpoint_ways import evaluate_ways
from tests.builders import HOUR_S, make_estimate, make_gpu, make_job, make_plan, make_price, make_trace
from tests.recommending import workloads_of

DRAWS = make_draws(np.random.default_rng(0))
AT_ONCE = StartWait.of(p_at_once=0.7, at_once_s=60.0, later_p50_s=4000.0, later_p90_s=40000.0)
POLICIES = tuple(Recovery)
WAIT, MOVE, WAIT_OR_ON_DEMAND, MOVE_OR_ON_DEMAND = POLICIES
HOURS, RATES = st.floats(0.5, 60), st.floats(0.01, 1.5)


@cache
def plan_of(num_zones=2, usd_per_h=1.05, startup_s=300.0):
    on_demand = replace(make_plan("X", 2.5), wait_s=AT_ONCE)
    there = Elsewhere(num_zones=num_zones, usd_per_h=usd_per_h, on_demand=on_demand)
    plan = make_plan("X", 1.0, market=Market.SPOT)
    return replace(plan, elsewhere=there, wait_s=AT_ONCE, startup_s=startup_s, minimum_billed_s=0.0)


def outcome(plan, terms, policy: Recovery, work_h, deadline_h=None):
    """Its run, and dollars by draw."""
    job = make_job(deadline_s=None if deadline_h is None else deadline_h * HOUR_S)
    assert suits(policy, plan, job, terms)
    given_terms = under(policy, job, lambda _: terms)(plan)
    work_s = np.exp(0.1 * DRAWS.prediction) * work_h * HOUR_S
    (run,) = runs_of([plan], [work_s], [given_terms], DRAWS)
    return work_s, run, costs_of([plan], [run], DRAWS).usd[0]


@settings(max_examples=40)
@given(HOURS, RATES, st.floats(0.05, 3), st.integers(1, 5), st.floats(0.9, 1.1))
def test_who_may_move_is_no_worse_off_but_for_the_rent_elsewhere(work_h, rate, away_h, num_zones, rent):
    terms = SpotTerms(
        preemptions_per_h=rate, reacquire_h=away_h, most_per_h=10 * rate, most_away_h=8.0,
        dispersion_up=5.0, dispersion_down=2.0,
    )  # fmt: skip
    plan = plan_of(num_zones, rent)
    _, stays, usd = outcome(plan, terms, WAIT, work_h)
    _, moves, moved_usd = outcome(plan, terms, MOVE, work_h)
    assert moves.time_s.mean() <= stays.time_s.mean() * (1 + 1e-9)
    assert moved_usd.mean() <= usd.mean() * max(rent, 1.0) * (1 + 1e-9)


@settings(max_examples=40)
@given(HOURS, RATES, st.floats(0.05, 3), st.floats(0.8, 4), st.sampled_from(POLICIES[2:]))
def test_who_falls_back_is_in_time_wherever_on_demand_alone_is(work_h, rate, away_h, times, policy):
    """In every draw in which on demand alone is, unless that machine comes later than what is in reserve."""
    plan, deadline_h = plan_of(), work_h * times
    terms = SpotTerms(preemptions_per_h=rate, reacquire_h=away_h)
    work_s, run, usd = outcome(plan, terms, policy, work_h, deadline_h)
    waits_s = DRAWS.waits_of(AT_ONCE)
    alone_s = waits_s + plan.startup_s + work_s
    in_reserve = waits_s <= AT_ONCE.after_s(0.1) + 1
    assert (run.time_s <= deadline_h * HOUR_S + 1e-3)[(alone_s <= deadline_h * HOUR_S) & in_reserve].all()
    assert np.isfinite(usd).all()


@settings(max_examples=40)
@given(HOURS, RATES, st.floats(1, 4), st.sampled_from(POLICIES))
def test_cost_is_price_times_time_of_each_piece(work_h, rate, times, policy):
    plan, there = plan_of(), plan_of().elsewhere
    _, run, usd = outcome(plan, SpotTerms(preemptions_per_h=rate), policy, work_h, work_h * times)
    rents = [plan.usd_per_h * (1 - run.moved_share), there.usd_per_h * run.moved_share]
    spot_usd = sum(cost_usd(plan, run_s=run.run_s, kept_s=run.kept_s, over_median=rent) for rent in rents)
    pieces = spot_usd + there.on_demand_usd_per_h * run.on_demand_s / HOUR_S
    assert usd == pytest.approx(pieces, rel=1e-9)
    assert (run.run_s + run.on_demand_s <= run.time_s + 1e-3).all()


def test_what_is_done_on_demand_costs_as_much_as_on_demand_alone():
    """Without slack there is no time for spot: the price of the rest rises as that of the plan does."""
    price = make_price(2.5, p90=5.0)
    plan = plan_of()
    on_demand = replace(plan.elsewhere.on_demand, price=price)
    plan = replace(plan, elsewhere=replace(plan.elsewhere, on_demand=on_demand))
    alone = replace(
        make_plan("X", 2.5), price=price, wait_s=AT_ONCE, startup_s=plan.startup_s, minimum_billed_s=0.0
    )
    _, run, usd = outcome(plan, SpotTerms(preemptions_per_h=0.1), WAIT_OR_ON_DEMAND, 10.0, 9.0)
    work_s = np.exp(0.1 * DRAWS.prediction) * 10 * HOUR_S
    (own,) = runs_of([alone], [work_s], [SpotTerms()], DRAWS)
    alone_usd = costs_of([alone], [own], DRAWS).usd[0]
    leaves_at_once = run.on_demand_s >= plan.startup_s + work_s - 1e-3
    assert leaves_at_once.any()
    assert (usd >= alone_usd * (1 - 1e-2))[leaves_at_once].all()


def test_who_moves_fetches_the_data_anew():
    terms = SpotTerms(preemptions_per_h=1.0, reacquire_h=0.5)
    near = plan_of()
    far = replace(near, download_s=1800.0, startup_s=near.startup_s + 1800.0, transfer_usd=20.0)
    kept = replace(far, transfer_usd=0.0)
    _, run, usd = outcome(far, terms, MOVE, 20.0)
    _, _, without_usd = outcome(kept, terms, MOVE, 20.0)
    num_moves = run.moved_share / (1 - run.moved_share)
    assert usd - without_usd == pytest.approx(20.0 * (1 + num_moves))
    _, near_run, _ = outcome(near, terms, MOVE, 20.0)
    # Once at the start, and again with each of some twenty moves.
    assert run.time_s.mean() > near_run.time_s.mean() + 10 * 1800.0


def by_the_minute(by_s, *, work_s, begun_s, time_s):
    """`leaving` of one draw, slow and plain: each minute, whether what is left still fits on demand."""
    now_s = done_s = 0.0
    while done_s < work_s - 1e-6:
        if now_s + work_s - done_s > by_s:
            return now_s, done_s / work_s
        now_s += 60.0
        if now_s > begun_s:
            done_s += min(60.0, now_s - begun_s) * work_s / (time_s - begun_s)
    return np.inf, 1.0


@pytest.mark.parametrize("time_h", [9.0, 11.0, 14.0, 40.0, 1e9, np.inf])
@pytest.mark.parametrize("by_h", [5.0, 8.2, 12.0, 30.0])
def test_the_formula_agrees_with_the_plain_simulation(time_h, by_h):
    known = {"work_s": 8 * HOUR_S, "begun_s": 0.5 * HOUR_S, "time_s": time_h * HOUR_S}
    left_s, done = leaving(by_h * HOUR_S, **{name: np.array([value]) for name, value in known.items()})
    slow_left_s, slow_done = by_the_minute(by_h * HOUR_S, **known)
    assert left_s[0] == pytest.approx(slow_left_s, abs=200)
    assert done[0] == pytest.approx(slow_done, abs=0.01)


def test_a_policy_needs_somewhere_to_go_and_saved_work():
    job, spot = make_job(deadline_s=HOUR_S), SpotTerms()
    alone, zoned = make_plan("X", market=Market.SPOT), plan_of()
    only_zones = replace(zoned, elsewhere=Elsewhere(num_zones=1, usd_per_h=1.0))

    def suited(plan, job=job, spot=spot):
        return [policy for policy in POLICIES if suits(policy, plan, job, spot)]

    assert suited(zoned) == [*POLICIES]
    assert suited(alone) == suited(make_plan("X")) == ["wait"]
    assert suited(only_zones) == suited(zoned, replace(job, deadline_s=None)) == ["wait", "move"]
    assert suited(zoned, spot=SpotTerms(checkpoint_interval_h=None)) == ["wait", "move"]


@pytest.mark.parametrize(
    ("wait_s", "most_s"), [(AT_ONCE, AT_ONCE.after_s(0.2)), (Quantiles(p50=1, p90=7), 7)]
)
def test_the_reserve_is_what_the_confidence_asks_of_the_wait(wait_s, most_s):
    plan = plan_of()
    on_demand = replace(plan.elsewhere.on_demand, wait_s=wait_s)
    plan = replace(plan, elsewhere=replace(plan.elsewhere, on_demand=on_demand))
    job, terms = make_job(deadline_s=9 * HOUR_S, confidence=0.8), SpotTerms(checkpoint_h=0.0)
    (given_terms,) = [under(WAIT_OR_ON_DEMAND, job, lambda _: terms)(plan)]
    reserve_s = plan.startup_s + 0.5 * HOUR_S + most_s
    assert given_terms.work_ends_by_s == pytest.approx(9 * HOUR_S - reserve_s)


def test_each_plan_is_judged_under_the_policy_that_makes_it_cost_least_in_all():
    """By `recommend` itself: without a deadline the zones decide, with a tight one on demand does."""
    plan = plan_of()
    bare = replace(plan, elsewhere=None)
    terms = SpotTerms(preemptions_per_h=0.5, reacquire_h=3.0)

    def answer(which, **limits):
        job = make_job(iterations=36_000, **limits)
        gpus = {"X": make_gpu("X")}
        workloads = workloads_of(make_trace(), [make_estimate("X", 1.0)], gpus, job)
        (judged,) = evaluate_ways(workloads, [which], job, DRAWS, Conditions(spot=terms))
        return judged.option

    alone, free, tight = answer(bare), answer(plan), answer(plan, deadline_s=15 * HOUR_S)
    assert [option.risk.recovery for option in (alone, free, tight)] == ["wait", "move", "move-or-on-demand"]
    assert free.expected.time_s < alone.expected.time_s
    assert tight.p_within_deadline >= 0.9 > answer(bare, deadline_s=15 * HOUR_S).p_within_deadline
