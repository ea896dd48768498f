"""Providers and their regions."""

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from advisor.core.errors import CatalogError
from advisor.core.fabrics import board_fabric, linked
from advisor.core.findings.about_options import QuotaNeeded
from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Link, Market, Network
from advisor.pricing import providers
from advisor.pricing.instance_types import columns_of, load_instances
from advisor.pricing.node_counts import ALONE, USEFUL, NodeLimits, fabric_of, node_counts, numbers_of_nodes
from advisor.pricing.providers import (
    GpuForm,
    PriceAccess,
    Provider,
    is_community_host,
    known_form,
    load_providers,
    load_regions,
    quota_of,
)
from advisor.pricing.sources.snapshot import PRICE_FILES, read_offers
from advisor.pricing.storage_rates import RateKind, StorageCharge, StorageRate, charge, rates_at, usd_of
from advisor.report.words import sentence
from recommender.plans.candidates import AccountLimits, Quota, plans_of_offers, quota_note
from recommender.plans.extras import CloudTerms
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_trace
from tests.recommending import recommend


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes the rows of both files, which are then read in place of ours."""
    monkeypatch.setattr(providers, "catalog_path", lambda name: tmp_path / name)

    def put(*rows: str, forms: tuple[str, ...] = ()) -> None:
        (tmp_path / providers.PROVIDER_FILE).write_text(
            "\n".join((",".join(columns_of(Provider)), *rows)) + "\n"
        )
        (tmp_path / providers.FORM_FILE).write_text("\n".join((",".join(columns_of(GpuForm)), *forms)) + "\n")
        load_providers.cache_clear()
        providers.load_forms.cache_clear()

    yield put
    load_providers.cache_clear()
    providers.load_forms.cache_clear()


def line(provider: str = "a", terms: str = "60,1", community: str = "", source: str = "a test") -> str:
    return (
        f"{provider},hunt-{provider},published,region,x-* y,named,{community},,,{terms},{source},2026-11-01"
    )


def test_a_row_is_a_provider(write):
    write(line())
    (provider,) = load_providers().values()
    assert (provider.name, provider.gpuhunt_name, provider.access) == ("a", "hunt-a", PriceAccess.PUBLISHED)
    assert provider.left_out_locations == ("x-*", "y")
    assert (provider.minimum_billed_s, provider.billed_step_s, provider.known_billed_step_s) == (60, 1, 1)


def test_unknown_terms_are_the_longest_known_of_each_kind(write):
    write(line("a", "60,600"), line("b", "3600,1"), line("c", ","))
    unknown = load_providers()["c"]
    assert (unknown.minimum_billed_s, unknown.billed_step_s, unknown.known_billed_step_s) == (3600, 600, None)


def test_places_where_hosts_are_of_others(write):
    write(line("a", community="?? eu-*"), line("b"))
    assert is_community_host("a", "CA")
    assert is_community_host("a", "eu-west")
    assert not is_community_host("a", "us-west")
    assert not is_community_host("b", "CA")
    assert not is_community_host("nobody", "CA")


def test_the_first_form_that_matches_counts(write):
    write(line(), forms=("a,ND*,SXM,a test,2026-11-01", "a,N*,PCIE,a test,2026-11-01"))
    assert [known_form("a", name) for name in ("ND96", "NC24", "X1")] == ["SXM", "PCIE", None]
    assert known_form("b", "ND96") is None


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ((line(terms="much,1"),), "line 2"),
        ((line().replace("published", "guessed"),), "guessed"),
        ((line().replace("2026-11-01", "soon"),), "soon"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(write, rows, fault):
    write(*rows)
    with pytest.raises(CatalogError, match=fault):
        load_providers()


def test_every_region_with_a_price_is_known_and_its_clouds():
    instances, regions = load_instances(), load_regions()
    offers = [offer for name in PRICE_FILES for offer in read_offers(catalog_path(name), instances)]
    assert {(o.provider, o.region) for o in offers} <= {(r.provider, r.name) for r in regions.values()}


def test_aws_asks_and_google_does_not():
    opt_in = {region.name for region in load_regions().values() if region.is_opt_in}
    assert {load_regions()[name].provider for name in opt_in} == {"aws"}
    assert {"af-south-1", "ap-east-1", "eu-south-2", "il-central-1", "mx-central-1"} <= opt_in
    assert not {"us-east-1", "eu-west-3", "ap-northeast-3", "ap-south-1"} & opt_in


@pytest.mark.parametrize(
    ("provider", "instance_type", "market", "quota"),
    [
        ("aws", "p5.48xlarge", Market.ON_DEMAND, "L-417A185B"),
        ("aws", "p6-b200.48xlarge", Market.ON_DEMAND, "L-417A185B"),
        ("aws", "g5.xlarge", Market.ON_DEMAND, "L-DB2E81BA"),
        ("aws", "p4d.24xlarge", Market.SPOT, "L-7212CCBC"),
        ("aws", "p5.48xlarge", Market.SPOT, "L-C4BD4855"),
        ("gcp", "a3-highgpu-8g", Market.ON_DEMAND, "NVIDIA_H100_GPUS"),
        ("gcp", "a2-ultragpu-1g", Market.SPOT, "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS"),
        ("gcp", "n1-standard-8+2xT4", Market.SPOT, "PREEMPTIBLE_NVIDIA_T4_GPUS"),
    ],
)
def test_a_machine_has_its_quota(provider, instance_type, market, quota):
    found = quota_of(provider, instance_type, market)
    assert found is not None
    assert found.quota == quota


def test_every_machine_of_aws_on_demand_has_one():
    names = [name for provider, name in load_instances() if provider == "aws"]
    assert all(quota_of("aws", name, Market.ON_DEMAND) for name in names)


def test_what_nobody_wrote_down_has_none():
    assert quota_of("aws", "p5en.48xlarge", Market.SPOT) is None
    assert quota_of("lambda", "gpu_8x_h100", Market.ON_DEMAND) is None


def test_two_machines_need_twice_the_quota_and_the_row_says_what_to_request():
    offer = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=192)
    note = quota_note(offer, 2)
    assert note is not None
    assert sentence(note) == (
        "needs a quota of 384 vCPU in us-east-1: L-417A185B (Running On-Demand P instances). New accounts"
        " start with little or none: request it from aws first"
    )
    unknown = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=None)
    assert quota_note(unknown) is None


def test_of_equal_machines_the_one_with_quota_goes_first():
    offer = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=192)
    first = replace(offer, region="ap-south-1")
    limits = {("aws", "ap-south-1", "L-417A185B"): 0, ("aws", offer.region, "L-417A185B"): 192}
    account = AccountLimits(limits=limits, read_on="2026-11-26")
    lacking, enough = plans_of_offers([first, offer], terms=CloudTerms(startup_s=0.0), account=account)
    assert (lacking.lacks_quota, enough.lacks_quota) == (True, False)
    assert not any(isinstance(note, QuotaNeeded) for note in enough.notes)
    assert lacking.id < enough.id, "by their names it would be first"
    answer = recommend(
        make_trace(), {("X", lacking.layout): make_estimate("X", 0.1)}, {"X": make_gpu("X")},
        [lacking, enough], make_job(iterations=5000), rng=np.random.default_rng(0),
    )  # fmt: skip
    assert answer.recommended == enough.id


def test_a_plan_names_it_unless_the_user_told_what_the_account_may_start():
    offer = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=192)
    for quotas, is_named in (((), True), ((Quota(provider="aws", vcpus=500),), False)):
        (plan,) = plans_of_offers([offer], terms=CloudTerms(startup_s=0.0), quotas=quotas)
        assert any(isinstance(note, QuotaNeeded) for note in plan.notes) is is_named


DISK = StorageRate(
    provider="aws",
    region="us-east-1",
    kind=RateKind.BLOCK_STORAGE,
    up_to_gib=math.inf,
    usd=0.08,
    source="a test",
    as_of=date(2025, 1, 1),
)
EGRESS = replace(DISK, kind=RateKind.EGRESS_INTERNET)


@pytest.mark.parametrize(("gib", "usd"), [(0, 0), (4, 12), (10, 30), (30, 30 + 40), (100, 30 + 40 + 70)])
def test_an_amount_is_paid_tier_by_tier_and_beyond_the_last_nothing_is_guessed(gib, usd):
    tiers = [replace(EGRESS, up_to_gib=limit, usd=usd) for limit, usd in ((10, 3), (30, 2), (math.inf, 1))]
    assert usd_of(tiers, gib) == pytest.approx(usd)
    assert usd_of(tiers[:1], gib) == (None if gib > 10 else pytest.approx(usd))
    assert usd_of((), 1) is None


def test_a_region_without_a_row_is_unknown():
    rates = [DISK]
    assert len(rates_at(rates, RateKind.BLOCK_STORAGE, "aws", "us-east-1")) == 1
    for provider, region, kind in (
        ("aws", "us-east-2", RateKind.BLOCK_STORAGE),
        ("aws", "us-east-11", RateKind.BLOCK_STORAGE),
        ("gcp", "us-east-1", RateKind.BLOCK_STORAGE),
        ("aws", "us-east-1", RateKind.EGRESS_INTERNET),
    ):
        assert rates_at(rates, kind, provider, region) == ()


def test_the_first_glob_that_matches_has_the_word():
    rates = [
        replace(DISK, region=region, usd=usd) for region, usd in (("us-east-1", 0.5), ("us-*", 0.1), ("*", 9))
    ]

    def charged(region: str) -> list[float]:
        return [rate.usd for rate in rates_at(rates, RateKind.BLOCK_STORAGE, "aws", region)]

    assert (charged("us-east-1"), charged("us-west-2"), charged("eu-west-1")) == ([0.5], [0.1], [9])


ROUTE = replace(DISK, kind=RateKind.EGRESS_REGION, usd=0.02)


def test_a_route_has_a_rate_of_its_own():
    rates = [replace(ROUTE, to_region="us-east-2", usd=0.01), ROUTE]

    def usd(to_region: str) -> float:
        return charge(rates, RateKind.EGRESS_REGION, "aws", "us-east-1", gib=100, to_region=to_region).usd

    assert (usd("us-east-2"), usd("ap-south-1"), usd("")) == (1.0, 2.0, 2.0)


def test_what_no_rate_reaches_costs_the_dearest_of_its_provider():
    rates = [
        DISK,
        replace(DISK, region="sa-east-1", usd=0.152),
        replace(DISK, provider="gcp", region="us-east4", usd=0.5),
        replace(EGRESS, up_to_gib=10, usd=3),
    ]

    def charged(provider: str, region: str) -> StorageCharge:
        return charge(rates, RateKind.BLOCK_STORAGE, provider, region, gib=100)

    assert (charged("aws", "us-east-1").usd, charged("AWS", "us-east-1").stand_in) == (8.0, None)
    assert (charged("aws", "eu-west-1").usd, charged("lambda", "eu-west-1").usd) == (15.2, 50.0)
    assert charged("aws", "").stand_in == rates[1]
    beyond = charge(rates, RateKind.EGRESS_INTERNET, "aws", "us-east-1", gib=12)
    assert (beyond.usd, beyond.rate, beyond.stand_in) == (36.0, rates[3], rates[3])
    with pytest.raises(CatalogError, match="no rate of object-storage is known"):
        charge(rates, RateKind.OBJECT_STORAGE, "aws", "us-east-1", gib=1)


P4D = make_offer("A100-SXM-40GB", provider="aws", instance_type="p4d.24xlarge", num_gpus=8)
G5_SMALL = make_offer("A10G", provider="aws", instance_type="g5.12xlarge", num_gpus=4)
G5_LARGE = make_offer("A10G", provider="aws", instance_type="g5.48xlarge", num_gpus=8)
A_HOST = make_offer("RTX-4090", provider="vastai", instance_type="4x_RTX4090", num_gpus=4)
OFFERS = (P4D, G5_SMALL, G5_LARGE, A_HOST)


@pytest.mark.parametrize("limits", [ALONE, USEFUL, NodeLimits(exactly=1), NodeLimits(most=1, exactly=1)])
def test_machines_stay_alone_unless_more_are_asked_for(limits):
    assert [*map(node_counts(OFFERS, limits, {}, {}).of, OFFERS)] == [(1,)] * 4


WANTED = {"A100-SXM-40GB": {8, 24}, "A10G": {4, 16}}
SIXTEEN, TWELVE = {"A100-SXM-40GB": {16}}, {"A100-SXM-40GB": {12}}


@pytest.mark.parametrize(
    ("offer", "limits", "wanted", "beyond", "numbers"),
    [
        # The largest machines of their GPU go together, in useful numbers.
        (P4D, NodeLimits(most=6), {}, {}, (1, 2, 4, 6)),
        (G5_LARGE, NodeLimits(most=2), {}, {}, (1, 2)),
        (G5_SMALL, NodeLimits(most=2), {}, {}, (1,)),
        # One of unknown network stays alone.
        (A_HOST, NodeLimits(most=8), {}, {}, (1,)),
        (A_HOST, NodeLimits(most=8, exactly=2), {}, {}, ()),
        # An exact number leaves no other.
        (P4D, NodeLimits(most=None, exactly=3), {}, {}, (3,)),
        (G5_SMALL, NodeLimits(most=None, exactly=3), {}, {}, ()),
        # Numbers of GPUs count all nodes.
        (P4D, NodeLimits(most=4), WANTED, {}, (1, 3)),
        (P4D, NodeLimits(most=2), WANTED, {}, (1,)),
        (G5_SMALL, NodeLimits(most=4), WANTED, {}, (1,)),
        (G5_LARGE, NodeLimits(most=4), WANTED, {}, (2,)),
        (A_HOST, NodeLimits(most=4), WANTED, {}, ()),
        (P4D, NodeLimits(most=None, exactly=2), WANTED, {}, ()),
        # What no machine has is made of nodes where nobody limits them.
        (P4D, USEFUL, SIXTEEN, SIXTEEN, (2,)),
        (P4D, ALONE, SIXTEEN, SIXTEEN, ()),
        (P4D, USEFUL, SIXTEEN, {}, ()),
        (P4D, USEFUL, TWELVE, TWELVE, ()),
    ],
)
def test_how_many_go_together(offer, limits, wanted, beyond, numbers):
    assert node_counts(OFFERS, limits, wanted, beyond).of(offer) == numbers


def test_nodes_of_one_s_own_are_as_many_as_there_are():
    assert numbers_of_nodes(USEFUL, 4, 8, ()) == {1, 2, 4}
    assert numbers_of_nodes(USEFUL, 4, 8, (24, 40)) == {1, 2, 3, 4}
    assert numbers_of_nodes(NodeLimits(exactly=4), 4, 8, ()) == {4}
    assert numbers_of_nodes(NodeLimits(exactly=5), 4, 8, ()) == set()


GBIT = 1e9 / 8


@pytest.mark.parametrize(
    ("provider", "instance_type", "gpu", "link", "network", "gbit_per_s"),
    [
        # The kind by its row, the rate by instances.csv.
        ("aws", "p5.48xlarge", "H100-SXM-80GB", Link.NVSWITCH, Network.EFA, 3200),
        ("aws", "g5.48xlarge", "A10G", Link.HOST, Network.EFA, 100),
        # No row: the board, and plain TCP.
        ("aws", "p3.16xlarge", "V100-SXM-16GB", Link.NVLINK_MESH, Network.TCP, 25),
        ("aws", "g5.xlarge", "A10G", Link.HOST, Network.TCP, 2.5),
        # Both by its row.
        ("gcp", "a3-megagpu-8g", "H100-SXM-80GB", Link.NVSWITCH, Network.GPUDIRECT_TCP, 1600),
        ("gcp", "n1-standard-96+8xV100", "V100-SXM-16GB", Link.NVLINK_MESH, Network.TCP, 32),
        ("azure", "Standard_ND96isr_H100_v5", "H100-SXM-80GB", Link.NVSWITCH, Network.INFINIBAND, 3200),
        # The row's own link.
        ("gcp", "g4-standard-384", "RTX-PRO-6000-Server", Link.PCIE, Network.TCP, 400),
        ("azure", "Standard_NC96ads_A100_v4", "A100-PCIE-80GB", Link.NVLINK_PAIRS, Network.TCP, 80),
    ],
)
def test_a_machine_has_its_link_and_network(provider, instance_type, gpu, link, network, gbit_per_s):
    fabric = fabric_of(provider, instance_type, load_gpus()[gpu])
    assert (fabric.link, fabric.network) == (link, network)
    assert fabric.network_bytes_per_s == pytest.approx(gbit_per_s * GBIT)


def test_a_machine_that_nobody_knows_has_its_board_alone():
    gpu = load_gpus()["H100-SXM-80GB"]
    assert fabric_of("vast", "8x H100", gpu) == board_fabric(gpu)
    card = load_gpus()["A100-PCIE-80GB"]
    assert fabric_of("vast", "8x A100", card) == linked(card, Link.HOST)
    assert fabric_of("aws", "g3s.xlarge", load_gpus()["M60"]).network is None
