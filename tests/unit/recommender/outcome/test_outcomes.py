"""Plans judged many at once, against each one judged slowly and clearly on its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.values import Interval, IterationEstimate, Market, Plan, Quantiles, Tier
from advisor.report.words import sentence
from recommender.outcome.bill import cost_usd
from recommender.outcome.draws import (
    SHARED_ERROR,
    Z90,
    Array,
    Draws,
    log_normal,
    make_draws,
    waits,
)
from recommender.outcome.evaluate import CHUNK, evaluate_all
from recommender.outcome.outcomes import outcome_of, work_of
from recommender.outcome.reasons import risk_of
from recommender.outcome.spot import SIGMA_RATE, SIGMA_REACQUIRE, SpotTerms, drawn_hours, is_spot
from tests.builders import HOUR_S, make_estimate, make_gpu, make_job, make_plan, make_trace, quantiles_of

DRAWS = make_draws(np.random.default_rng(3))
WIDE = Interval(p10=0.05, p50=0.1, p90=0.2)


def slowly(plan: Plan, estimate: IterationEstimate, iterations: int, terms: SpotTerms, draws: Draws) -> Array:
    """Seconds trained, seconds until done and dollars of one plan: an array [3, n]."""
    train_s = iterations * log_normal(estimate.iteration_s, draws.prediction_of(estimate.gpu))
    running_s = train_s
    if is_spot(plan):
        makespan_h, billed_h = drawn_hours(
            train_s / HOUR_S,
            terms,
            rate_per_h=terms.preemptions_per_h * np.exp(SIGMA_RATE * draws.preemption_rate),
            reacquire_h=terms.reacquire_h * np.exp(SIGMA_REACQUIRE * draws.reacquire),
            z=draws.preemption,
        )
        train_s, running_s = makespan_h * HOUR_S, billed_h * HOUR_S
    wait_s = waits(plan.wait_s, draws.wait) if plan.wait_s else 0.0
    kept_s = plan.startup_s + train_s
    rent = cost_usd(
        replace(plan, storage_usd_per_h=0.0),
        run_s=plan.startup_s + running_s,
        kept_s=kept_s,
    )
    usd = rent * dearer(plan, draws) + plan.storage_usd_per_h * kept_s / HOUR_S
    return np.array([train_s, wait_s + kept_s, usd])


def dearer(plan: Plan, draws: Draws) -> Array:
    """Over today's price: 1 in the lower half, the p90 of the past at the p90 of the draws."""
    past = plan.offer.spot_usd_per_h if plan.offer is not None else None
    if past is None or past.p90 <= plan.offer.list_usd_per_h:
        return np.ones_like(draws.price)
    return np.array([(past.p90 / plan.offer.list_usd_per_h) ** max(z / Z90, 0.0) for z in draws.price])


def with_past(plan: Plan, p90_over_today: float | None) -> Plan:
    """A rented spot plan whose prices of the past are known."""
    if not is_spot(plan) or p90_over_today is None or plan.offer is None:
        return plan
    p90 = plan.offer.list_usd_per_h * p90_over_today
    past = Interval(p10=p90 / 2, p50=p90 / 1.5, p90=p90)
    return replace(plan, offer=replace(plan.offer, spot_usd_per_h=past))


PASTS = st.none() | st.floats(0.2, 5)
PLANS = st.builds(
    make_plan,
    st.sampled_from(["A", "B", "C"]),
    st.floats(0.1, 50),
    tier=st.sampled_from([Tier.CLOUD, Tier.CLUSTER]),
    market=st.sampled_from([Market.ON_DEMAND, Market.SPOT]),
    startup_s=st.floats(0, 900),
    wait_s=st.none() | st.just(Quantiles(p50=600.0, p90=7200.0)),
    storage_usd_per_h=st.floats(0, 1),
)
PLANS = st.builds(with_past, PLANS, PASTS)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(PLANS, st.floats(0, 2)), min_size=1, max_size=6))
def test_together_as_alone(pairs: list[tuple[Plan, float]]) -> None:
    plans = [plan for plan, _ in pairs]
    terms = [SpotTerms(preemptions_per_h=rate) for _, rate in pairs]
    estimates = [make_estimate(plan.gpu, WIDE) for plan in plans]
    works = [work_of(estimate, 50_000, DRAWS) for estimate in estimates]
    found = outcome_of(plans, works, terms, DRAWS)
    for i, plan in enumerate(plans):
        expected = slowly(plan, estimates[i], 50_000, terms[i], DRAWS)
        assert np.allclose([found.train_s[i], found.time_s[i], found.cost_usd[i]], expected, rtol=1e-12)


def test_options_come_in_the_order_of_their_plans_whatever_the_batch() -> None:
    plans = [make_plan("A", 1.0 + i, id=f"{i}") for i in range(2 * CHUNK + 3)]
    estimates = {("A", 1): make_estimate("A", WIDE)}
    judged = list(
        evaluate_all(
            plans, estimates, {"A": make_gpu("A")}, make_trace(), make_job(), DRAWS, lambda _: SpotTerms()
        )
    )
    assert [item.option.plan.id for item in judged] == [plan.id for plan in plans]
    for item in (judged[0], judged[CHUNK], judged[-1]):
        expected = slowly(item.option.plan, estimates["A", 1], 100_000, SpotTerms(), DRAWS)
        assert item.option.cost_usd == quantiles_of(expected[2])
        assert item.option.time_s == quantiles_of(expected[1])


def test_one_gpu_errs_in_one_way_and_two_mostly_in_their_own() -> None:
    one, again, other = (DRAWS.prediction_of(name) for name in ("A", "A", "B"))
    assert np.array_equal(one, again)
    assert np.array_equal(np.sort(one), np.sort(other))
    pairs = [
        np.corrcoef(DRAWS.prediction_of(f"G{i}"), DRAWS.prediction_of(f"G{i + 1}"))[0, 1]
        for i in range(0, 40, 2)
    ]
    assert np.mean(pairs) == pytest.approx(SHARED_ERROR, abs=0.03)


# --- Prices of the past -------------------------------------------------------------------------------


def cost_of(plan: Plan, work_h: float = 10.0, interval: Interval = WIDE) -> Quantiles:
    works = [work_of(make_estimate(plan.gpu, interval), round(work_h * 36_000), DRAWS)]
    return quantiles_of(
        outcome_of([plan], works, [SpotTerms(preemptions_per_h=0.0, checkpoint_h=0.0)], DRAWS).cost_usd[0]
    )


def spot_plan(p90_over_today: float | None = None, **changes: object) -> Plan:
    return with_past(make_plan("A", 2.0, market=Market.SPOT, **changes), p90_over_today)


@settings(max_examples=40, deadline=None)
@given(PLANS.filter(is_spot), st.floats(1, 8))
def test_a_dear_past_never_makes_a_job_cheaper_than_at_todays_price(plan: Plan, rise: float) -> None:
    today = cost_of(replace(plan, offer=replace(plan.offer, spot_usd_per_h=None)))
    risen = cost_of(with_past(plan, rise))
    assert risen.p90 >= today.p90
    assert risen.p50 >= today.p50


@pytest.mark.parametrize("past", [None, 1.0, 0.4])
def test_a_flat_or_cheaper_past_costs_price_times_time(past: float | None) -> None:
    sure = Interval(p10=0.1, p50=0.1, p90=0.1)
    found = cost_of(spot_plan(past), work_h=10.0, interval=sure)
    assert (found.p50, found.p90) == (pytest.approx(20.0), pytest.approx(20.0))


def test_where_time_is_sure_the_cost_has_the_quantiles_of_the_price() -> None:
    found = cost_of(spot_plan(1.5), work_h=10.0, interval=Interval(p10=0.1, p50=0.1, p90=0.1))
    assert (found.p50, found.p90) == (pytest.approx(20.0), pytest.approx(30.0))


def test_the_past_of_another_market_or_of_disks_changes_nothing() -> None:
    on_demand = make_plan("A", 2.0)
    past = replace(on_demand, offer=replace(on_demand.offer, spot_usd_per_h=Interval(p10=1, p50=2, p90=9)))
    assert cost_of(past) == cost_of(on_demand)
    sure = Interval(p10=0.1, p50=0.1, p90=0.1)
    with_disk = cost_of(spot_plan(1.5, storage_usd_per_h=1.0), work_h=10.0, interval=sure)
    assert with_disk.p90 == pytest.approx(30.0 + 10.0), "a disk keeps its price"


def test_a_contract_lowers_dear_hours_as_it_lowers_todays() -> None:
    plan = spot_plan(1.5)
    cheaper = replace(plan, usd_per_h=1.0, offer=replace(plan.offer, contracted_usd_per_h=1.0))
    assert cost_of(cheaper).p90 == pytest.approx(cost_of(plan).p90 / 2)


def test_the_risk_tells_how_dear_hours_were() -> None:
    assert sentence(risk_of(spot_plan(1.5), SpotTerms())).endswith(
        "9 of 10 past hours cost up to 1.50 times today's price"
    )
    assert "past" not in sentence(risk_of(spot_plan(0.9), SpotTerms())) + sentence(
        risk_of(spot_plan(), SpotTerms())
    )
