"""Plans by the names that people give them."""

import re
from collections.abc import Sequence

import pytest

from advisor.core.errors import InputError
from advisor.core.values import Layout, Market, Plan, Tier
from recommender.plans.named import num_nodes_of, plans_named, plans_with_words
from tests.builders import make_offer, make_plan


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
