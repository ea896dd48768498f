"""What a job pays a cloud besides the machine, by hand: disks by the month, egress by tier, download time."""

import math
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from advisor.core.errors import CatalogError
from advisor.core.findings.about_options import DataMoved, GangAssumed, RateUnknown
from advisor.core.units import GIB
from advisor.core.values import DataPlace, Fabric, Link, Market, Network, Offer, Plan, Quantiles, Tier
from advisor.pricing.node_counts import NodeLimits
from advisor.pricing.storage_rates import RateKind, StorageRate
from advisor.report.words import sentence
from recommender.outcome.nodes import slowest_boot, times_of_one
from recommender.plans.candidates import OwnMachine, Quota, cheapest_plans, plans_of_machine, plans_of_offers
from recommender.plans.extras import CloudTerms, Extras, extras_at, extras_of_own
from recommender.queue.waits import assumed_wait
from tests.builders import make_offer, make_price


def rate(kind: RateKind, usd: float, up_to_gib: float = math.inf, **changes: Any) -> StorageRate:
    facts: dict[str, Any] = {
        "provider": "aws",
        "region": "us-*",
        "kind": kind,
        "up_to_gib": up_to_gib,
        "usd": usd,
        "source": "a price list",
        "as_of": date(2025, 1, 1),
    }
    return StorageRate(**(facts | changes))


CATALOG = (
    rate(RateKind.BLOCK_STORAGE, 0.073),
    rate(RateKind.OBJECT_STORAGE, 77.0),
    rate(RateKind.EGRESS_REGION, 77.0),
    rate(RateKind.EGRESS_INTERNET, 0.2, 100),
    rate(RateKind.EGRESS_INTERNET, 0.1, 1000),
)


def extras(region: str = "us-east-1", provider: str = "aws", **changes: Any) -> Extras:
    return extras_at(provider, region, CloudTerms(**({"startup_s": 300.0} | changes)), CATALOG)


def test_disks_hold_the_system_and_the_data_set():
    # 0.073 USD a month are 0.0001 USD an hour of 730.
    assert extras(boot_disk_gib=100).storage_usd_per_h == pytest.approx(0.01)
    assert extras(boot_disk_gib=100, dataset_gib=150).storage_usd_per_h == pytest.approx(0.025)
    assert extras(dataset_gib=150).storage_usd_per_h == pytest.approx(0.015)


def test_egress_is_paid_once_and_tier_by_tier():
    assert extras(result_gib=50).egress_usd == pytest.approx(10)
    assert extras(result_gib=300).egress_usd == pytest.approx(20 + 20)
    assert extras(dataset_gib=50, boot_disk_gib=50).egress_usd == 0


def test_what_is_not_needed_costs_nothing_wherever_it_is():
    assert extras("mars") == Extras()


@pytest.mark.parametrize(
    ("provider", "region"), [("aws", "eu-west-1"), ("gcp", "us-east-1"), ("moon", "sea")]
)
def test_what_has_no_rate_costs_the_dearest_known(provider, region):
    bill = extras(region, provider, boot_disk_gib=100, result_gib=500)
    assert bill.storage_usd_per_h == pytest.approx(0.01)
    assert bill.egress_usd == pytest.approx(500 * 0.2)
    assert [(type(note), note.facts["line"], note.facts["region"]) for note in bill.notes] == [
        (RateUnknown, "storage", region),
        (RateUnknown, "data transfer", region),
    ]
    assert bill.rates["storage"] == "100 GiB at 0.073 USD per GiB-month; a price list, 2025-01-01"


def test_more_than_the_last_known_tier_goes_on_at_the_dearest():
    assert extras(result_gib=1000) == replace(extras(result_gib=1000), notes=(), egress_usd=20 + 90)
    beyond = extras(result_gib=1001, boot_disk_gib=1)
    assert beyond.egress_usd == pytest.approx(20 + 90 + 0.2)
    assert [note.facts["line"] for note in beyond.notes] == ["data transfer"]


def test_without_any_rate_nobody_can_tell():
    with pytest.raises(CatalogError, match="no rate of block-storage is known"):
        extras_at("aws", "us-east-1", CloudTerms(startup_s=0.0, boot_disk_gib=1.0), ())


def test_each_rate_is_told_with_source_and_date():
    assert extras(boot_disk_gib=100, dataset_gib=150.5, result_gib=20).rates == {
        "storage": "250.5 GiB at 0.073 USD per GiB-month; a price list, 2025-01-01",
        "data transfer": "20 GiB at 0.2 USD per GiB; a price list, 2025-01-01",
    }
    assert extras(result_gib=101).rates["data transfer"].startswith("101 GiB from 0.2 USD per GiB")


def test_the_data_set_takes_its_time():
    # 125 GiB at 1 Gbit/s: 125 x 2^30 x 8 / 10^9 s.
    assert extras(dataset_gib=125.0).download_s == pytest.approx(125 * GIB * 8 / 1e9)
    faster = extras(dataset_gib=125.0, download_bits_per_s=10e9)
    assert faster.download_s == pytest.approx(extras(dataset_gib=125.0).download_s / 10)
    assert extras(boot_disk_gib=500.0, result_gib=500.0).download_s == 0


VIRGINIA = DataPlace(name="s3://photos", provider="aws", region="us-east-1")
HOME = DataPlace(name="local")


def moved(provider: str, region: str, data: DataPlace | None, gib: float = 100.0) -> Extras:
    rates = (
        rate(RateKind.BLOCK_STORAGE, 0.073),
        rate(RateKind.EGRESS_REGION, 0.01, region="us-east-1", to_region="us-east-2"),
        rate(RateKind.EGRESS_REGION, 0.02, region="us-*"),
        rate(RateKind.EGRESS_REGION, 0.14, region="sa-east-1"),
        rate(RateKind.EGRESS_INTERNET, 0.09, region="us-east-1"),
        rate(RateKind.EGRESS_INTERNET, 0.15, region="sa-east-1"),
    )
    terms = CloudTerms(startup_s=300.0, dataset_gib=gib, data=data)
    return extras_at(provider, region, terms, rates)


def test_data_in_the_region_is_read_in_place():
    bill = moved("aws", "us-east-1", VIRGINIA)
    assert bill == Extras(notes=bill.notes)
    assert bill.notes == (DataMoved(place="s3://photos", gib=0.0, usd=0.0, time_s=0.0),)


@pytest.mark.parametrize(
    ("provider", "region", "usd"),
    [
        ("aws", "us-east-2", 1.0),
        ("aws", "ap-south-1", 2.0),
        ("gcp", "us-east-1", 9.0),
        ("gcp", "us-east1", 9.0),
    ],
)
def test_moving_is_billed_where_the_data_lies(provider, region, usd):
    bill = moved(provider, region, VIRGINIA)
    assert bill.transfer_usd == pytest.approx(usd)
    assert (bill.transfer_gib, bill.egress_usd) == (100.0, 0.0)
    assert bill.download_s == pytest.approx(100 * GIB * 8 / 1e9)
    assert "moving the data" in bill.rates
    (note,) = (note for note in bill.notes if isinstance(note, DataMoved))
    assert (note.facts["place"], note.facts["usd"]) == ("s3://photos", bill.transfer_usd)


@pytest.mark.parametrize("data", [None, HOME])
def test_sending_data_into_a_cloud_takes_time_and_no_money(data):
    bill = moved("aws", "us-east-1", data)
    assert (bill.transfer_usd, bill.transfer_gib) == (0.0, 100.0)
    assert bill.download_s > 0


def test_data_at_an_unknown_place_is_at_the_dearest_of_its_cloud():
    lost = DataPlace(name="s3://lost", provider="aws")
    assert moved("aws", "us-east-1", lost).transfer_usd == pytest.approx(14.0)
    assert moved("gcp", "us-east1", lost).transfer_usd == pytest.approx(15.0)
    (unknown,) = (n for n in moved("aws", "us-east-1", lost).notes if isinstance(n, RateUnknown))
    assert unknown.facts["region"] is None
    assert "an unknown region of aws" in sentence(unknown)


def test_a_machine_of_ones_own_pays_for_data_from_a_cloud_alone():
    rates = (rate(RateKind.EGRESS_INTERNET, 0.09),)
    terms = CloudTerms(startup_s=300.0, dataset_gib=100.0, data=VIRGINIA)
    bill = extras_of_own(terms, rates)
    assert (bill.transfer_usd, bill.storage_usd_per_h) == (pytest.approx(9.0), 0.0)
    assert bill.download_s == pytest.approx(100 * GIB * 8 / 1e9)
    for data in (None, HOME):
        assert not extras_of_own(replace(terms, data=data), rates).download_s


P4D = make_offer(
    "A100-SXM-40GB", 30.0, instance_type="p4d.24xlarge", num_gpus=8, num_vcpus=96, minimum_billed_s=60.0
)
WAIT = Quantiles(p50=3600.0, p90=7200.0)
TERMS = CloudTerms(startup_s=300.0, boot_disk_gib=100.0, dataset_gib=50.0, result_gib=10.0)
FABRIC = Fabric(
    link=Link.NVSWITCH, link_bytes_per_s=3e11, network=Network.INFINIBAND, network_bytes_per_s=2e11
)


def plan_of(num_nodes: int, offer: Offer = P4D, terms: CloudTerms = TERMS) -> Plan:
    return plans_of_offers([offer], terms=terms, node_counts=lambda _: (num_nodes,))[0]


def test_rent_and_disks_are_of_all_nodes_and_the_result_leaves_once():
    one, four = plan_of(1), plan_of(4)
    assert (four.num_gpus, four.num_nodes, four.layout.gpus_per_node) == (32, 4, 8)
    assert four.usd_per_h == 4 * P4D.list_usd_per_h
    assert four.storage_usd_per_h == pytest.approx(4 * one.storage_usd_per_h)
    assert four.egress_usd == one.egress_usd > 0
    assert (four.minimum_billed_s, four.billed_step_s) == (one.minimum_billed_s, one.billed_step_s)
    assert four.vcpus_per_gpu == one.vcpus_per_gpu == 12


def test_an_id_and_a_layout_name_the_nodes():
    two = plan_of(2)
    assert two.id == "aws/2xp4d.24xlarge/us-east-1/on-demand"
    assert two.layout.of(two.gpu) == "2 x 8 x A100-SXM-40GB"
    assert two.layout.fabric is not None
    assert two.layout.fabric.network is Network.EFA


def test_within_a_node_only_its_link_counts_and_of_one_gpu_nothing():
    fabric = plan_of(1).layout.fabric
    assert fabric is not None
    assert (fabric.link, fabric.network, fabric.network_bytes_per_s) == (Link.NVSWITCH, None, None)
    assert plan_of(1, make_offer("T4", instance_type="g4dn.xlarge")).layout.fabric is None


def test_all_boot_at_once_and_the_slowest_decides():
    assert plan_of(4, terms=CloudTerms(startup_s=300.0)).startup_s == 300.0 * slowest_boot(4) > 300.0


def test_copies_come_at_once_from_a_cloud_and_one_after_the_other_over_a_line_of_one_s_own():
    in_cloud = replace(TERMS, data=DataPlace(name="s3://b", provider="aws", region="eu-west-1"))
    one, two = (plan_of(num_nodes, terms=in_cloud) for num_nodes in (1, 2))
    assert two.download_s == one.download_s
    assert two.transfer_gib == 2 * one.transfer_gib == 100
    assert two.transfer_usd == pytest.approx(2 * one.transfer_usd)
    assert plan_of(2).download_s == 2 * plan_of(1).download_s > 0
    there = replace(TERMS, data=DataPlace(name="s3://b", provider="aws", region="us-east-1"))
    assert plan_of(2, terms=there).transfer_gib == plan_of(2, terms=there).download_s == 0


def test_a_price_is_of_all_nodes_and_as_unsure():
    price = replace(make_price(10.0, 20.0), run_p90_usd_per_h=(21.0, 22.0, 24.0))
    (plan,) = plans_of_offers([P4D], terms=TERMS, prices=[price], node_counts=lambda _: (3,))
    assert plan.price is not None
    assert (plan.usd_per_h, plan.price.usd_per_h.p90) == (30.0, 60.0)
    for days in (0.0, 10.0, 100.0):
        assert plan.price.p90_over(days) == pytest.approx(3 * price.p90_over(days))


@pytest.mark.parametrize(("num_nodes", "is_blocked"), [(1, False), (2, False), (3, True)])
def test_a_quota_counts_the_vcpus_of_all_nodes(num_nodes, is_blocked):
    quota = Quota(provider="aws", vcpus=192)
    (plan,) = plans_of_offers([P4D], terms=TERMS, quotas=[quota], node_counts=lambda _: (num_nodes,))
    assert (plan.blocked is not None) == is_blocked
    if plan.blocked is not None:
        assert plan.blocked.facts["num_vcpus"] == 96 * num_nodes


def test_places_are_compared_among_plans_of_as_many_nodes():
    dear = replace(P4D, region="us-east-2", list_usd_per_h=31.0)
    plans = plans_of_offers([P4D, dear], terms=TERMS, node_counts=lambda _: (1, 2))
    assert {plan.id for plan in cheapest_plans(plans)} == {plan_of(1).id, plan_of(2).id}


def test_without_a_word_each_machine_is_alone():
    assert plans_of_offers([P4D], terms=TERMS) == [plan_of(1)]


def lab(**changes: object) -> OwnMachine:
    facts: dict[str, object] = {
        "tier": Tier.CLUSTER, "name": "lab", "gpu": "H100-SXM-80GB", "num_gpus": 8, "usd_per_gpu_h": 2.0,
        "wait_s": WAIT, "num_vcpus": 64, "num_nodes": 4, "fabric": FABRIC,
    }  # fmt: skip
    return OwnMachine(**(facts | changes))  # type: ignore[arg-type]


def test_a_cluster_plans_parts_of_one_node_and_whole_ones_together():
    plans = plans_of_machine(lab())
    assert [(plan.num_nodes, plan.layout.gpus_per_node) for plan in plans] == [
        (1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8),
    ]  # fmt: skip
    four = plans[-1]
    assert (four.id, four.usd_per_h) == ("cluster/lab/4x8xH100-SXM-80GB", 64.0)
    assert four.layout.fabric == FABRIC
    assert four.vcpus_per_gpu == 8


def test_a_cluster_s_wait_is_that_for_a_node_and_grows():
    *_, one, two, four = plans_of_machine(lab())
    assert (one.wait_s, one.notes) == (WAIT, ())
    assert four.wait_s == Quantiles(p50=3600.0 * times_of_one(4), p90=7200.0 * times_of_one(4))
    assert [type(note) for note in two.notes] == [GangAssumed]
    assert plans_of_machine(lab(wait_s=None))[-1].wait_s == assumed_wait(32, None)[0]


@pytest.mark.parametrize(
    ("limits", "asked", "nodes"),
    [
        (NodeLimits(most=None), (), {1, 2, 4}),
        (NodeLimits(most=2), (), {1, 2}),
        (NodeLimits(most=None, exactly=3), (), {3}),
        (NodeLimits(most=None, exactly=5), (), set()),
        (NodeLimits(most=None), (24,), {1, 2, 3, 4}),
    ],
)
def test_nodes_of_a_cluster_are_those_asked_for(limits, asked, nodes):
    plans = plans_of_machine(lab(), asked=asked, nodes=limits)
    assert {plan.num_nodes for plan in plans} == nodes


def test_spot_and_on_demand_are_planned_alike():
    spot = replace(P4D, market=Market.SPOT)
    assert plan_of(2, spot).id == "aws/2xp4d.24xlarge/us-east-1/spot"
