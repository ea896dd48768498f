"""Laws of several nodes: each costs what one costs, none makes a start or a run any surer."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Layout, Market, Offer, Option, Plan
from advisor.pricing.instance_types import load_instances
from advisor.pricing.node_counts import ALONE, USEFUL, NodeLimits, node_counts
from advisor.service.prices.query_limits import is_wanted
from recommender.outcome.draws import make_draws, waits
from recommender.outcome.outcomes import DrawnRun, runs_of
from recommender.outcome.spot import SpotTerms, terms_of_plans
from recommender.plans.candidates import plans_of_offers, wait_of
from recommender.plans.extras import CloudTerms
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_price, make_trace
from tests.recommending import recommend

DRAWS = make_draws(np.random.default_rng(1))
NODES = st.integers(1, 64)
INSTANCES = sorted(load_instances().values(), key=lambda machine: machine.key)
OFFERS = st.builds(
    lambda machine, usd, market: make_offer(
        machine.gpu,
        usd,
        provider=machine.provider,
        instance_type=machine.instance_type,
        num_gpus=machine.num_gpus,
        market=market,
    ),
    st.sampled_from(INSTANCES),
    st.floats(0.1, 100),
    st.sampled_from([Market.ON_DEMAND, Market.SPOT]),
)
TERMS = st.builds(
    CloudTerms,
    startup_s=st.floats(0, 1e4),
    boot_disk_gib=st.floats(0, 1e3),
    dataset_gib=st.floats(0, 1e3),
    result_gib=st.floats(0, 1e3),
)


def plan_of(offer: Offer, num_nodes: int, terms: CloudTerms, p90: float = 2.0) -> Plan:
    price = make_price(offer.list_usd_per_h, offer.list_usd_per_h * p90)
    return plans_of_offers([offer], terms=terms, prices=[price], node_counts=lambda _: (num_nodes,))[0]


@given(OFFERS, NODES, TERMS, st.floats(1, 3))
def test_n_nodes_cost_n_times_one_by_the_hour_and_never_less_once(offer, num_nodes, terms, p90):
    one, many = (plan_of(offer, count, terms, p90) for count in (1, num_nodes))
    assert many.num_gpus == num_nodes * one.num_gpus
    for mine, each in (
        (many.usd_per_h, one.usd_per_h),
        (many.storage_usd_per_h, one.storage_usd_per_h),
        (many.price and many.price.usd_per_h.p90, one.price and one.price.usd_per_h.p90),
    ):
        assert np.isclose(mine or 0.0, num_nodes * (each or 0.0))
    assert many.egress_usd == one.egress_usd
    assert many.transfer_usd >= one.transfer_usd
    assert many.startup_s >= one.startup_s


@given(OFFERS, NODES, NODES)
def test_a_start_of_more_nodes_never_waits_less(offer, left, right):
    few, many = (
        waits(wait_of(offer, configured=None, history={}, num_nodes=count)[0], DRAWS.wait)
        for count in sorted((left, right))
    )
    assert (many >= few - 1e-6).all()


def spot_run(terms: SpotTerms, num_nodes: int, hours: float) -> tuple[DrawnRun, SpotTerms]:
    offer = make_offer(market=Market.SPOT)
    plan = plan_of(offer, num_nodes, CloudTerms(startup_s=0.0), 1.0)
    at = terms_of_plans(terms, None)(plan)
    return runs_of([plan], [np.full(len(DRAWS.wait), hours * 3600.0)], [at], DRAWS)[0], at


@given(
    st.floats(0.001, 3), st.floats(0, 5), st.floats(0.05, 2), st.floats(0.2, 50), NODES, NODES
)  # fmt: skip
def test_a_node_more_never_lowers_the_odds_of_a_preemption_nor_what_it_costs(
    rate, away_h, sigma, hours, left, right
):
    terms = SpotTerms(preemptions_per_h=rate, reacquire_h=away_h, sigma_rate=sigma, sigma_reacquire=sigma)
    (few, few_at), (many, many_at) = (spot_run(terms, count, hours) for count in sorted((left, right)))
    assert many_at.preemptions_per_h >= few_at.preemptions_per_h
    assert many_at.reacquire_h >= few_at.reacquire_h
    # Whoever sees no preemption takes the work and its checkpoints alone.
    undisturbed = few.train_s.min() * (1 + 1e-9)
    assert (many.train_s > undisturbed).sum() >= (few.train_s > undisturbed).sum()
    assert np.median(many.train_s) >= np.median(few.train_s) * (1 - 1e-9)


@given(st.lists(OFFERS, min_size=1, max_size=12), st.data())
def test_one_node_at_most_is_what_there_was_before(offers, data):
    gpus = sorted({offer.gpu for offer in offers})
    wanted = data.draw(st.dictionaries(st.sampled_from(gpus), st.sets(st.sampled_from([1, 2, 4, 8, 16]))))
    alone = node_counts(offers, ALONE, wanted, {})
    more = node_counts(offers, NodeLimits(most=data.draw(NODES)), wanted, {})
    unsaid = node_counts(offers, USEFUL, wanted, {})
    for offer in offers:
        is_kept = is_wanted(wanted, offer.gpu, offer.num_gpus)
        assert alone.of(offer) == unsaid.of(offer) == ((1,) if is_kept else ())
        assert (1 in more.of(offer)) == is_kept
        for number in more.of(offer):
            asked = wanted.get(offer.gpu)
            assert not asked or number * offer.num_gpus in asked


@given(
    st.floats(0.5, 50),
    st.lists(st.floats(0.3, 1.2), min_size=3, max_size=3),
    st.floats(0.1, 50),
    st.booleans(),
)
def test_nothing_of_several_nodes_is_on_the_frontier_that_one_node_dominates(
    hours, efficiencies, usd_per_h, is_spot
):
    offer = make_offer("X", usd_per_h, num_gpus=8, market=Market.SPOT if is_spot else Market.ON_DEMAND)
    numbers = (1, 2, 4, 8)
    plans = plans_of_offers([offer], terms=CloudTerms(startup_s=300.0), node_counts=lambda _: numbers)
    estimates = {
        ("X", plan.layout): replace(
            make_estimate("X", hours * 0.036 / efficiency), layout=plan.layout
        )
        for plan, efficiency in zip(plans, (1.0, *efficiencies), strict=True)
    }  # fmt: skip
    answer = recommend(
        make_trace(), estimates, {"X": make_gpu("X")}, plans, make_job(), rng=np.random.default_rng(1)
    )
    one = next(option for option in answer.options if option.plan.num_nodes == 1)
    for plan_id in answer.frontier:
        option = answer.option(plan_id)
        assert option is not None
        assert option is one or not one.feasible or not dominates(one, option)


def dominates(one: Option, other: Option) -> bool:
    """As fast and as cheap, and better in one of them."""
    mine, theirs = (one.time_s.p50, one.counted_usd), (other.time_s.p50, other.counted_usd)
    return mine != theirs and all(left <= right for left, right in zip(mine, theirs, strict=True))


@given(NODES, st.integers(1, 16))
def test_a_layout_in_words_counts_its_gpus(num_nodes, gpus_per_node):
    layout = Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes)
    *numbers, gpu = layout.of("H100").split(" x ")
    assert gpu == "H100"
    assert int(np.prod([int(number) for number in numbers])) == layout.num_gpus
