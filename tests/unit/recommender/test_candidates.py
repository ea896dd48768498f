"""What could be rented or used: counts, rates, ids and the cheapest place of each machine."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.types import Market, Quantiles, Tier
from recommender.candidates import Machine, cheapest_places, plans_of_machine, plans_of_offers, useful_counts
from tests.builders import make_offer

WAIT = Quantiles(p50=3600.0, p90=7200.0)


def make_machine(**changes: Any) -> Machine:
    facts: dict[str, Any] = {
        "tier": Tier.CLUSTER,
        "name": "lab",
        "gpu": "X",
        "num_gpus": 4,
        "usd_per_gpu_h": 0.5,
        "wait_s": WAIT,
    }
    return Machine(**(facts | changes))


@pytest.mark.parametrize(
    ("num_gpus", "counts"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (7, [1, 2, 4, 7]), (8, [1, 2, 4, 8])],
)
def test_useful_counts_are_powers_of_two_and_all(num_gpus: int, counts: list[int]) -> None:
    assert useful_counts(num_gpus) == counts


def test_a_cluster_charges_for_each_gpu_used() -> None:
    plans = plans_of_machine(make_machine())
    assert [plan.num_gpus for plan in plans] == [1, 2, 4]
    assert [plan.usd_per_h for plan in plans] == [0.5, 1.0, 2.0]


def test_a_cluster_keeps_its_name_and_wait() -> None:
    plan = plans_of_machine(make_machine())[-1]
    assert plan.id == "cluster/lab/4xX"
    assert (plan.tier, plan.provider, plan.wait_s) == (Tier.CLUSTER, "lab", WAIT)
    assert plan.offer is None
    assert (plan.startup_s, plan.minimum_billed_s) == (0, 0)


def test_an_unknown_rate_and_wait_stay_unknown() -> None:
    for plan in plans_of_machine(make_machine(usd_per_gpu_h=None, wait_s=None)):
        assert plan.usd_per_h is None
        assert plan.wait_s is None


def test_a_machine_that_costs_nothing_is_not_one_of_unknown_cost() -> None:
    assert [plan.usd_per_h for plan in plans_of_machine(make_machine(usd_per_gpu_h=0.0))] == [0, 0, 0]


def test_this_machine_never_waits() -> None:
    plan = plans_of_machine(make_machine(tier=Tier.LOCAL, name="desk", wait_s=None, num_gpus=1))[0]
    assert plan.wait_s == Quantiles(p50=0.0, p90=0.0)
    assert (plan.id, plan.provider) == ("local/1xX", "local")


def test_two_clusters_with_the_same_gpu_have_distinct_ids() -> None:
    plans = [*plans_of_machine(make_machine()), *plans_of_machine(make_machine(name="other"))]
    assert len({plan.id for plan in plans}) == len(plans) == 6


def test_an_offer_becomes_the_whole_machine() -> None:
    offer = make_offer(num_gpus=8, usd_per_h=32.0, minimum_billed_s=60.0)
    plan = plans_of_offers([offer], startup_s=300.0)[0]
    assert (plan.num_gpus, plan.num_nodes, plan.usd_per_h) == (8, 1, 32.0)
    assert (plan.startup_s, plan.minimum_billed_s) == (300.0, 60.0)
    assert plan.offer is offer
    assert plan.wait_s is None


def test_an_offer_is_paid_at_the_contracted_price() -> None:
    offer = make_offer(usd_per_h=32.0, contracted_usd_per_h=20.0)
    assert plans_of_offers([offer], startup_s=0.0)[0].usd_per_h == 20.0


def test_the_id_of_an_offer_tells_zone_and_market_apart() -> None:
    offers = [
        make_offer(),
        make_offer(market=Market.SPOT),
        make_offer(market=Market.SPOT, zone="use1-az1"),
        make_offer(market=Market.SPOT, zone="use1-az2"),
        make_offer(provider="gcp"),
    ]
    ids = [plan.id for plan in plans_of_offers(offers, startup_s=0.0)]
    assert ids[0] == "aws/x.xlarge/us-east-1/on-demand"
    assert ids[2] == "aws/x.xlarge/use1-az1/spot"
    assert len(set(ids)) == 5


def test_only_the_cheapest_place_of_a_machine_stays() -> None:
    dear, cheap = make_offer(usd_per_h=3.0), make_offer(usd_per_h=2.0, region="eu-north-1")
    assert cheapest_places([dear, cheap]) == [cheap]
    assert cheapest_places([cheap, dear]) == [cheap]


def test_markets_types_and_providers_do_not_compete_for_a_place() -> None:
    offers = [
        make_offer(usd_per_h=3.0),
        make_offer(usd_per_h=1.0, market=Market.SPOT),
        make_offer(usd_per_h=2.0, provider="gcp"),
        make_offer(usd_per_h=4.0, instance_type="x.2xlarge"),
    ]
    assert cheapest_places(offers) == offers


def test_the_contracted_price_decides_which_place_is_cheapest() -> None:
    listed = make_offer(usd_per_h=2.0)
    contracted = make_offer(usd_per_h=3.0, contracted_usd_per_h=1.0, region="eu-north-1")
    assert cheapest_places([listed, contracted]) == [contracted]


def test_equal_prices_are_decided_by_the_name_of_the_place() -> None:
    places = [
        make_offer(region="us-east-1", zone="use1-az2"),
        make_offer(region="us-east-1", zone="use1-az1"),
        make_offer(region="ap-south-1", zone="zzz"),
    ]
    assert cheapest_places(places) == cheapest_places(places[::-1]) == [places[2]]
    assert cheapest_places(places[:2]) == cheapest_places(places[1::-1]) == [places[1]]


def test_nothing_offered_is_nothing_to_rent() -> None:
    assert cheapest_places([]) == plans_of_offers([], startup_s=1.0) == []
