"""Plans by the names that people give them."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.core.findings.about_estimates import EditScript
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Layout, Market, Offer, Plan, Quantiles, Tier
from advisor.pricing.sources.custom import CustomSource
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from advisor.report.words import sentence, sentences
from recommender.outcome.reasons import capability, software_changes, why_unsupported
from recommender.plans.candidates import Quota, over_quota, plans_of_offers
from recommender.plans.extras import CloudTerms
from recommender.plans.named import num_nodes_of, plans_named, plans_with_words
from tests.builders import make_gpu, make_offer, make_plan


def rented(machine: str, gpu: str, num_gpus: int, region: str, market: Market = Market.ON_DEMAND) -> Plan:
    provider = "gcp" if machine.startswith("g2") else "aws"
    return make_plan(
        gpu,
        num_gpus=num_gpus,
        id=f"{provider}/{machine}/{region}/{market}",
        provider=provider,
        offer=make_offer(
            gpu, provider=provider, instance_type=machine, region=region, num_gpus=num_gpus, market=market
        ),
    )


def own(name: str, gpu: str, num_gpus: int, *, num_nodes: int = 1) -> Plan:
    nodes = "" if num_nodes == 1 else f"{num_nodes}x"
    return make_plan(
        gpu,
        tier=Tier.CLUSTER,
        id=f"cluster/{name}/{nodes}{num_gpus}x{gpu}",
        provider=name,
        layout=Layout(gpus_per_node=num_gpus, num_nodes=num_nodes),
    )


PLANS = (
    rented("g6.xlarge", "L4", 1, "us-east-1"),
    rented("g6.12xlarge", "L4", 4, "us-east-1"),
    rented("g6.12xlarge", "L4", 4, "us-east-1", Market.SPOT),
    rented("g6.12xlarge", "L4", 4, "eu-west-1"),
    rented("g2-standard-48", "L4", 4, "us-east4"),
    rented("p4d.24xlarge", "A100-SXM-40GB", 8, "us-east-1"),
    rented("p4de.24xlarge", "A100-SXM-80GB", 8, "us-east-1"),
    own("lab", "L4", 1),
    own("lab", "L4", 2),
    own("farm", "H100-SXM-80GB", 8),
    own("farm", "H100-SXM-80GB", 8, num_nodes=2),
)


def ids(plans: Sequence[Plan]) -> list[str]:
    return [plan.id for plan in plans]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.id)
def test_an_id_is_its_plan(plan):
    assert plans_named(plan.id, PLANS) == [plan]
    assert plans_named(f" {plan.id.upper()} ".replace("/", " / "), PLANS) == [plan]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("g6.12xlarge", {1, 2, 3}),
        ("G6.12xlarge us-east-1", {1, 2}),
        ("spot g6.12xlarge", {2}),
        ("g6.12xlarge/eu-west-1", {3}),
        ("L4", {0, 7}),
        ("spot L4 us-east-1", {2}),
        ("H100", {9}),
        ("L4:4", {1, 2, 3, 4}),
        ("gcp nvidia-l4:4", {4}),
        ("A100:8", {5, 6}),
        ("A100 aws", {5, 6}),
        ("lab L4:2", {8}),
        ("farm 8xH100-SXM-80GB", {9}),
        ("H100:16", {10}),
        ("H100:8x2", {10}),
        ("L4:2 lab", {8}),
    ],
)
def test_words_mean_all_plans_that_have_them(name, meant):
    assert ids(plans_named(name, PLANS)) == [PLANS[i].id for i in sorted(meant)]


@pytest.mark.parametrize("name", ["lab", "farm", "us-east-1", "aws", "spot aws us-east-1 L4:1..4"])
def test_a_name_that_leaves_the_size_open_is_refused_with_the_sizes(name):
    try:
        sizes = {(plan.gpu, plan.num_gpus) for plan in plans_with_words(name, PLANS)}
    except InputError:
        pytest.fail(f"{name} is on plans")
    if len(sizes) == 1:
        assert plans_named(name, PLANS)
        return
    with pytest.raises(InputError, match="sizes: add one of") as caught:
        plans_named(name, PLANS)
    assert all(f"{gpu}:{count}" in str(caught.value) for gpu, count in sizes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "names no plan: give an id"),
        ("  / ", "names no plan"),
        ("g6.12xlrge", "no plan has 'g6.12xlrge'. Did you mean 'g6.12xlarge'"),
        ("L4:3", "no plan has 'L4:3'; there are L4:1, L4:2, L4:4."),
        ("B200:8", "no plan has 'B200:8'; there are A100-SXM-40GB, A100-SXM-80GB, H100-SXM-80GB, L4."),
        ("L4:four", "no plan has 'L4:four'"),
        ("gcp g6.12xlarge", "no plan has them all"),
        ("spot p4d.24xlarge", "no plan has them all"),
    ],
)
def test_what_no_plan_has_is_refused_with_what_there_is(name, why):
    with pytest.raises(InputError, match=re.escape(why)):
        plans_named(name, PLANS)


def test_a_long_list_of_sizes_is_cut():
    plans = [own("lab", "L4", count) for count in range(1, 13)]
    with pytest.raises(InputError, match=r"12 sizes: add one of L4:1, .*, L4:8, 4 more\."):
        plans_named("lab", plans)


@pytest.mark.parametrize(
    ("name", "num_nodes"),
    [
        ("p5.48xlarge", 1),
        ("2xp5.48xlarge spot", 2),
        ("aws/16xp5.48xlarge/us-east-1/on-demand", 16),
        ("H100:8x4", 4),
        ("A100:80GB:8x4", 4),
        ("L4:4", 1),
        ("cluster/lab/8xH100-SXM-80GB", 1),
        ("cluster/lab/2x8xH100-SXM-80GB", 2),
        ("0x1", 0),
        ("99999999999x9", 1),
        ("", 1),
    ],
)
def test_a_name_says_how_many_nodes_it_asks_for(name, num_nodes):
    assert num_nodes_of(name) == num_nodes


BOTH = (Market.ON_DEMAND, Market.SPOT)


def quota(**changes: object) -> Quota:
    facts = {"provider": "aws", "instance_types": ("p*",), "regions": ("us-*",), "markets": BOTH, "vcpus": 96}
    return Quota(**(facts | changes))


def offer(**changes: object) -> Offer:
    return make_offer("X", **({"instance_type": "p5.48xlarge", "num_vcpus": 192} | changes))


def test_what_is_too_large_says_the_figures_and_whom_to_ask():
    reason = over_quota(offer(), [quota()])
    assert reason is not None
    assert sentence(reason) == (
        "over the quota: it has 192 vCPU, and 96 are allowed for p* in us-east-1; ask aws for more"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"provider": "gcp"},
        {"instance_types": ("g*",)},
        {"regions": ("eu-*",)},
        {"markets": (Market.SPOT,)},
        {"vcpus": 192},
    ],
)
def test_a_quota_of_something_else_or_a_large_one_forbids_nothing(other):
    assert over_quota(offer(), [quota(**other)]) is None


def test_every_quota_that_matches_must_hold():
    assert over_quota(offer(), [quota(vcpus=500), quota(instance_types=("P5.*",), vcpus=0)])


def test_a_machine_of_unknown_size_is_not_judged():
    assert over_quota(offer(num_vcpus=None), [quota(vcpus=0)]) is None


@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_higher_quota_never_forbids_more(vcpus, low, more):
    machine = offer(num_vcpus=vcpus)
    if over_quota(machine, [quota(vcpus=low)]) is None:
        assert over_quota(machine, [quota(vcpus=low + more)]) is None


def test_plans_carry_the_quota_and_the_wait():
    wait = Quantiles(p50=60.0, p90=3600.0)
    terms = CloudTerms(startup_s=0.0, wait_s=wait)
    free, blocked = plans_of_offers([offer(num_vcpus=8), offer()], terms=terms, quotas=[quota()])
    assert free.blocked is None
    assert blocked.blocked is not None
    assert (free.wait_s, blocked.wait_s) == (wait, wait)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("7.5", (7, 5)), ("10.0", (10, 0)), ("12.1", (12, 1)), ("", None), ("gfx942", None), ("9", None)],
)
def test_a_capability_is_two_numbers_or_none(text, numbers):
    assert capability(make_gpu(compute_capability=text)) == numbers


def test_every_gpu_of_the_catalog_has_a_capability_or_is_of_another_vendor():
    for spec in load_gpus().values():
        assert (capability(spec) is None) == (spec.vendor != "NVIDIA")


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [("3.7", True), ("4.9", True), ("5.0", False), ("5.2", False), ("10.0", False), ("gfx942", False)],
)
def test_cuda_12_starts_at_5_0(text, unsupported):
    assert (why_unsupported(make_gpu(compute_capability=text)) is not None) == unsupported


@pytest.mark.parametrize(
    ("text", "old_build"),
    [("3.7", False), ("5.0", True), ("7.0", True), ("7.4", True), ("7.5", False), ("12.0", False)],
)
def test_an_old_build_is_asked_for_from_5_0_until_before_7_5(text, old_build):
    gpu = make_gpu(compute_capability=text, architecture="Oldtimer")
    needed = list(software_changes(make_plan(), gpu))
    assert bool(needed) == old_build
    assert all("Oldtimer" in line and "CUDA 12" in line for line in sentences(needed))


def test_an_own_machine_has_no_offer_to_read():
    assert not list(software_changes(make_plan(offer=None), make_gpu(compute_capability="9.0")))


def test_two_reasons_are_two_lines():
    gpu = make_gpu(compute_capability="gfx942", vendor="AMD")
    needed = sentences(software_changes(make_plan(offer=make_offer(architecture="arm64")), gpu))
    assert len(needed) == 2
    assert "AMD" in needed[0]
    assert "aarch64" in needed[1]


def test_an_arm_host_is_a_fact_of_the_offer_whichever_source_has_it(tmp_path):
    """Before: it was read out of the text "(Arm)", which only our own catalog writes."""
    path = tmp_path / "rates.yaml"
    path.write_text(
        "- {provider: aws, instance_type: g5g.xlarge, region: us-east-1, gpu: T4G, num_gpus: 1,"
        " usd_per_h: 0.3, as_of: 2026-11-01}\n"
    )
    query = OfferQuery(providers=("aws",), gpus=("T4G",))
    for source in (SnapshotSource(), CustomSource([str(path)])):
        offers = [offer for part in source.offers(query) for offer in part.offers]
        assert offers
        for offer in offers:
            codes = set(software_changes(make_plan("T4G", offer=offer), resolve_gpu("T4G")))
            assert EditScript(what="install-aarch64") in codes, offer
            x86 = replace(offer, architecture="x86_64", includes=("4 vCPU (Arm)",))
            assert not list(software_changes(make_plan("T4G", offer=x86), resolve_gpu("T4G")))
