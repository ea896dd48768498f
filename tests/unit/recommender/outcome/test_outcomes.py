"""Plans judged many at once, against each one judged slowly and clearly on its own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.values import (
    Interval,
    IterationEstimate,
    Layout,
    Market,
    Plan,
    Quantiles,
    QuoteKind,
    StartWait,
    Tier,
)
from advisor.pricing.spot_odds import spot_odds, start_odds
from advisor.report.words import sentence
from recommender.outcome import nodes
from recommender.outcome.bill import cost_usd
from recommender.outcome.draws import (
    NUM_DRAWS,
    SHARED_ERROR,
    SHARED_PRICE,
    Z90,
    Array,
    Draws,
    log_normal,
    make_draws,
    waits,
)
from recommender.outcome.outcomes import CHUNK, Costs, costs_of, runs_of, work_of
from recommender.outcome.reasons import risk_of
from recommender.outcome.spot import (
    ASSUMED_TERMS,
    CONFIGURED,
    SIGMA_RATE,
    SIGMA_REACQUIRE,
    SpotTerms,
    drawn_hours,
    is_spot,
    terms_of_plans,
)
from recommender.plans.candidates import together, wait_of
from tests.builders import (
    HOUR_S,
    ONE_GPU,
    make_estimate,
    make_gpu,
    make_job,
    make_offer,
    make_plan,
    make_price,
    make_trace,
    quantiles_of,
)
from tests.findings import said
from tests.recommending import evaluated as evaluate_all

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
    rent = cost_usd(replace(plan, storage_usd_per_h=0.0), run_s=plan.startup_s + running_s, kept_s=kept_s)
    usd = rent * dearer(plan, draws) + plan.storage_usd_per_h * kept_s / HOUR_S
    return np.array([train_s, wait_s + kept_s, usd])


def dearer(plan: Plan, draws: Draws) -> Array:
    """Over the median price: 1 in the lower half, the p90 of the price at the p90 of the draws."""
    if plan.price is None or plan.offer is None:
        return np.ones_like(draws.price)
    rise = plan.price.usd_per_h.p90 / plan.price.usd_per_h.p50
    own = draws.price_of(f"{plan.provider}/{plan.gpu}/{plan.offer.region}")
    return np.array([rise ** max(z / Z90, 0.0) for z in own])


def unsure(plan: Plan, rise: float | None, kind: QuoteKind = QuoteKind.DATED) -> Plan:
    """A rented plan whose price is known so far alone."""
    if rise is None or plan.offer is None or plan.usd_per_h is None:
        return plan
    return replace(plan, price=make_price(plan.usd_per_h, plan.usd_per_h * rise, kind))


RISES = st.none() | st.floats(1, 5)
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
PLANS = st.builds(unsure, PLANS, RISES, st.sampled_from(QuoteKind))


@given(st.lists(st.tuples(PLANS, st.floats(0, 2)), min_size=1, max_size=6))
def test_together_as_alone(pairs):
    plans = [plan for plan, _ in pairs]
    terms = [SpotTerms(preemptions_per_h=rate) for _, rate in pairs]
    estimates = [make_estimate(plan.gpu, WIDE) for plan in plans]
    works = [work_of(estimate, 50_000, DRAWS) for estimate in estimates]
    runs = runs_of(plans, works, terms, DRAWS)
    costs = costs_of(plans, runs, DRAWS)
    for i, (plan, run) in enumerate(zip(plans, runs, strict=True)):
        expected = slowly(plan, estimates[i], 50_000, terms[i], DRAWS)
        assert np.allclose([run.train_s, run.time_s, costs.usd[i]], expected, rtol=1e-12)
        assert np.array_equal(costs.counted_usd[i], costs.usd[i]) or plans[i].price.is_guess


def test_a_run_that_is_shared_is_that_of_the_plan_itself():
    works = [np.full_like(DRAWS.wait, hours * HOUR_S) for hours in (3.0, 40.0)]
    # They differ in all that a gang's and a class's terms may differ in.
    rates = [
        SpotTerms(preemptions_per_h=0.05),
        SpotTerms(preemptions_per_h=0.8, restart_h=0.7, dispersion_up=2.0, dispersion_down=3.0),
    ]
    asked = [
        (make_plan("A", 1.0, market=market, startup_s=startup_s, id=f"{i}"), work, terms)
        for i in range(2)
        for work in works
        for terms in rates
        for market in Market
        for startup_s in (0.0, 300.0)
    ]
    plans, works_s, terms = zip(*asked, strict=True)
    together = runs_of(plans, works_s, terms, DRAWS)
    for run, (plan, work_s, each) in zip(together, asked, strict=True):
        (alone,) = runs_of([plan], [work_s], [each], DRAWS)
        assert np.array_equal(
            [run.train_s, run.run_s, run.kept_s, run.time_s],
            [alone.train_s, alone.run_s, alone.kept_s, alone.time_s],
        )
    # On demand nothing depends on the terms of spot; a plan beside its equal is no run of its own.
    assert len({id(run) for run in together}) == 4 * 2 + 2 * 2


def test_nodes_that_are_alike_are_judged_alike_and_each_has_its_own_option():
    same = [make_plan("A", 1.0, tier=Tier.CLUSTER, id=f"{i}") for i in range(3)]
    plans = [*same, make_plan("A", 2.0, tier=Tier.CLUSTER, id="dear")]
    judged = list(
        evaluate_all(
            plans, {("A", ONE_GPU): make_estimate("A", WIDE)}, {"A": make_gpu("A")}, make_trace(), make_job(),
            DRAWS, lambda _: SpotTerms(),
        )
    )  # fmt: skip
    assert [item.option.plan for item in judged] == plans
    first, second, _, dear = judged
    assert (second.option.cost_usd, second.option.expected) == (first.option.cost_usd, first.option.expected)
    assert second.cost_usd is first.cost_usd
    assert dear.option.cost_usd.p50 == pytest.approx(2 * first.option.cost_usd.p50)


def test_options_come_in_the_order_of_their_plans_whatever_the_batch():
    plans = [make_plan("A", 1.0 + i, id=f"{i}") for i in range(2 * CHUNK + 3)]
    estimates = {("A", ONE_GPU): make_estimate("A", WIDE)}
    judged = list(
        evaluate_all(
            plans, estimates, {"A": make_gpu("A")}, make_trace(), make_job(), DRAWS, lambda _: SpotTerms()
        )
    )
    assert [item.option.plan.id for item in judged] == [plan.id for plan in plans]
    for item in (judged[0], judged[CHUNK], judged[-1]):
        expected = slowly(item.option.plan, estimates["A", ONE_GPU], 100_000, SpotTerms(), DRAWS)
        assert item.option.cost_usd == quantiles_of(expected[2])
        assert item.option.time_s == quantiles_of(expected[1])


def test_one_gpu_errs_in_one_way_and_two_mostly_in_their_own():
    one, again, other = (DRAWS.prediction_of(name) for name in ("A", "A", "B"))
    assert np.array_equal(one, again)
    assert np.array_equal(np.sort(one), np.sort(other))
    pairs = [
        np.corrcoef(DRAWS.prediction_of(f"G{i}"), DRAWS.prediction_of(f"G{i + 1}"))[0, 1]
        for i in range(0, 40, 2)
    ]
    assert np.mean(pairs) == pytest.approx(SHARED_ERROR, abs=0.03)


def cost_of(plan: Plan, work_h: float = 10.0, interval: Interval = WIDE) -> Quantiles:
    works = [work_of(make_estimate(plan.gpu, interval), round(work_h * 36_000), DRAWS)]
    return quantiles_of(calm_costs(plan, works).usd[0])


def calm_costs(plan: Plan, works: list[Array]) -> Costs:
    calm = SpotTerms(preemptions_per_h=0.0, checkpoint_h=0.0)
    return costs_of([plan], runs_of([plan], works, [calm], DRAWS), DRAWS)


def spot_plan(rise: float | None = None, kind: QuoteKind = QuoteKind.DATED) -> Plan:
    return unsure(make_plan("A", 2.0, market=Market.SPOT), rise, kind)


def test_prices_of_one_place_move_together_and_of_two_mostly_on_their_own():
    one, again = DRAWS.price_of("aws/A/us-east-1"), DRAWS.price_of("aws/A/us-east-1")
    assert np.array_equal(one, again)
    places = [DRAWS.price_of(f"place {i}") for i in range(40)]
    pairs = [np.corrcoef(a, b)[0, 1] for a, b in zip(places[::2], places[1::2], strict=True)]
    assert np.mean(pairs) == pytest.approx(SHARED_PRICE, abs=0.03)


def test_a_guessed_price_counts_at_its_p90_and_is_billed_as_it_is_drawn():
    works = [work_of(make_estimate("A", Interval(p10=0.1, p50=0.1, p90=0.1)), 360_000, DRAWS)]
    costs = calm_costs(spot_plan(1.5, QuoteKind.DERIVED), works)
    assert np.allclose(costs.counted_usd, 30.0)
    assert quantiles_of(costs.usd[0]).p50 == pytest.approx(20.0)
    assert quantiles_of(costs.usd[0]).p90 == pytest.approx(30.0)


@settings(max_examples=40)
@given(PLANS.filter(is_spot), st.floats(1, 8))
def test_a_price_that_may_rise_never_makes_a_job_cheaper(plan, rise):
    today = cost_of(replace(plan, price=None))
    risen = cost_of(unsure(plan, rise))
    assert risen.p90 >= today.p90
    assert risen.p50 >= today.p50


@pytest.mark.parametrize("rise", [None, 1.0])
def test_an_exact_price_costs_price_times_time(rise):
    sure = Interval(p10=0.1, p50=0.1, p90=0.1)
    cost = cost_of(spot_plan(rise), work_h=10.0, interval=sure)
    assert (cost.p50, cost.p90) == (pytest.approx(20.0), pytest.approx(20.0))


def test_where_time_is_sure_the_cost_has_the_quantiles_of_the_price():
    cost = cost_of(spot_plan(1.5), work_h=10.0, interval=Interval(p10=0.1, p50=0.1, p90=0.1))
    assert (cost.p50, cost.p90) == (pytest.approx(20.0), pytest.approx(30.0))


@settings(max_examples=40)
@given(st.lists(st.floats(1, 2), min_size=3, max_size=3).map(sorted), st.floats(1, 3000), st.floats(1, 3))
def test_the_cost_of_a_longer_job_is_never_the_surer_one(rises, work_h, longer):
    plan = unsure(make_plan("A", 2.0, market=Market.SPOT), 1.0)
    assert plan.price is not None
    drifting = replace(plan, price=replace(plan.price, run_p90_usd_per_h=tuple(2.0 * rise for rise in rises)))
    sure = Interval(p10=0.1, p50=0.1, p90=0.1)
    short, long = (cost_of(drifting, work_h=hours, interval=sure) for hours in (work_h, work_h * longer))
    assert long.p90 / long.p50 >= short.p90 / short.p50 * (1 - 1e-9)
    assert short.p90 / short.p50 <= rises[-1] * (1 + 1e-9)


def test_a_disk_keeps_its_price():
    sure = Interval(p10=0.1, p50=0.1, p90=0.1)
    plan = replace(spot_plan(1.5), storage_usd_per_h=1.0)
    assert cost_of(plan, work_h=10.0, interval=sure).p90 == pytest.approx(30.0 + 10.0)


def test_the_risk_tells_how_dear_the_price_may_be():
    assert sentence(risk_of(spot_plan(1.5), SpotTerms())).endswith(
        "1 in 10 such prices comes to 1.50 times the median or more"
    )
    assert "median" not in sentence(risk_of(spot_plan(1.0), SpotTerms())) + sentence(
        risk_of(spot_plan(), SpotTerms())
    )


FEW_DRAWS = make_draws(np.random.default_rng(0))


def gang_plan(num_nodes: int, **changes: Any) -> Plan:
    offer = make_offer(market=Market.SPOT, num_gpus=8)
    return make_plan(layout=Layout(gpus_per_node=8, num_nodes=num_nodes), offer=offer, **changes)


def test_the_prior_lies_between_one_fate_and_one_for_each():
    drawn = nodes.times_of_one(16) * nodes.drawn_over_median(np.array([16.0]), FEW_DRAWS.preemption_rate)[0]
    assert np.quantile(drawn, [0.5, 0.9]) == pytest.approx(
        [16**nodes.EXPONENT_P50, 16**nodes.EXPONENT_P90], rel=0.01
    )
    assert drawn.min() == pytest.approx(1.0)
    assert drawn.max() <= 16.0


def test_the_prior_covers_what_is_known_of_eight_gpus_and_of_sixteen_nodes():
    """Eight GPUs against one in the same zone, and 7 to 11 of 16 nodes that went at once."""
    one, eight = (start_odds("T4", count, Market.SPOT).wait_s.p_at_once for count in (1, 8))
    away = spot_odds("T4", 8).outage_h / spot_odds("T4", 1).outage_h
    known = [np.log(np.log(eight) / np.log(one)) / np.log(8), np.log(away) / np.log(8)]
    known += [np.log(16 / together) / np.log(16) for together in (7, 11)]
    assert all(0 < exponent < nodes.EXPONENT_P90 for exponent in known)
    assert np.mean(known) == pytest.approx(nodes.EXPONENT_P50, abs=0.05)


def test_one_node_is_what_it_was():
    one = gang_plan(1)
    assert (nodes.times_of_one(1), nodes.slowest_boot(1), nodes.all_at_once(0.7, 1)) == (1.0, 1.0, 0.7)
    assert terms_of_plans(SpotTerms(), None)(one) == SpotTerms()
    assert (nodes.drawn_over_median(np.ones(1), FEW_DRAWS.preemption_rate) == 1).all()


def test_terms_of_a_gang_grow_and_restart_with_the_slowest_boot():
    terms = SpotTerms(preemptions_per_h=0.4, reacquire_h=1.0, restart_h=0.1, most_per_h=3.0, most_away_h=5.0)
    gang = terms_of_plans(terms, None)(gang_plan(16))
    assert (gang.preemptions_per_h, gang.reacquire_h, gang.num_nodes) == (0.8, 2.0, 16)
    assert gang.restart_h == pytest.approx(0.1 * nodes.slowest_boot(16))
    # For each running hour it goes away so many times as often, and for so many times as long.
    assert (gang.most_per_h, gang.most_away_h) == (6.0, 20.0)
    assert gang.rate_source == CONFIGURED


def test_the_class_of_a_gang_is_that_of_its_machine():
    one = make_plan(
        layout=Layout(gpus_per_node=1, num_nodes=2), offer=make_offer(market=Market.SPOT), gpu="T4"
    )
    odds = spot_odds("T4", 1)
    terms = terms_of_plans(ASSUMED_TERMS, None)(one)
    assert terms.preemptions_per_h == pytest.approx(odds.preemptions_per_h * nodes.times_of_one(2))
    assert terms.reacquire_h == pytest.approx(odds.outage_h * nodes.times_of_one(2))


def test_every_draw_of_more_nodes_is_as_late_and_takes_as_long():
    work_s = np.full(NUM_DRAWS, 20 * 3600.0)
    plans = [gang_plan(num_nodes) for num_nodes in (1, 2, 8)]
    terms = [terms_of_plans(SpotTerms(), None)(plan) for plan in plans]
    rows_s = [run.train_s for run in runs_of(plans, [work_s] * 3, terms, FEW_DRAWS)]
    medians = [float(np.median(row)) for row in rows_s]
    assert medians == sorted(medians)
    assert np.mean(rows_s[2]) > np.mean(rows_s[1]) > np.mean(rows_s[0])


def test_a_start_of_several_waits_for_the_last():
    offer = make_offer("T4", num_gpus=8)
    (one, _), (four, notes) = (
        wait_of(offer, configured=None, history={}, num_nodes=num_nodes) for num_nodes in (1, 4)
    )
    assert isinstance(one, StartWait)
    assert isinstance(four, StartWait)
    assert four.p_at_once == pytest.approx(one.p_at_once ** nodes.times_of_one(4))
    assert four.later_p50_s == pytest.approx(one.later_p50_s * nodes.times_of_one(4))
    assert (FEW_DRAWS.waits_of(four) >= FEW_DRAWS.waits_of(one)).all()
    assert "4 nodes must be there at once: assumed that 75 % of starts find all of them" in said(notes)


def test_a_configured_wait_is_that_for_one():
    configured = make_plan().wait_s
    assert configured is not None
    wait_s = replace(configured, p50=60.0, p90=600.0)
    four, notes = wait_of(make_offer(), configured=wait_s, history={}, num_nodes=16)
    assert (four.p50, four.p90) == (120.0, 1200.0)
    assert said(notes) == "16 nodes must be there at once: assumed that the wait is 2 times that for one"
    assert together(wait_s, 16) == four
