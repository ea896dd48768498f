"""Plans judged many at once, against each one judged slowly and clearly on its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.types import Interval, IterationEstimate, Market, Plan, Quantiles, Tier
from recommender.bill import cost_usd
from recommender.draws import SHARED_ERROR, Array, Draws, log_normal, make_draws, quantiles_of, waits
from recommender.evaluate import CHUNK, evaluate_all
from recommender.outcomes import outcome_of, work_of
from recommender.spot import SIGMA_RATE, SIGMA_REACQUIRE, SpotTerms, drawn_hours, is_spot
from tests.builders import HOUR_S, make_estimate, make_gpu, make_job, make_plan, make_trace

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
    usd = cost_usd(plan, run_s=plan.startup_s + running_s, kept_s=kept_s)
    return np.array([train_s, wait_s + kept_s, usd])


PLANS = st.builds(
    make_plan,
    st.sampled_from(["A", "B", "C"]),
    st.floats(0.1, 50),
    tier=st.sampled_from([Tier.CLOUD, Tier.CLUSTER]),
    market=st.sampled_from([Market.ON_DEMAND, Market.SPOT]),
    startup_s=st.floats(0, 900),
    wait_s=st.none() | st.just(Quantiles(p50=600.0, p90=7200.0)),
    storage_usd_per_h=st.none() | st.floats(0, 1),
)


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
