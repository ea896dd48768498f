"""Ids of plans and what is given beside them, as facts that a policy can judge."""

import pytest

from advisor.config.layers import load_config
from advisor.core.errors import InputError
from advisor.core.values import Tier
from advisor.service.listening import Listener
from advisor.service.plan_facts import PlanRequest, given_facts
from recommender.outcome.nodes import times_of_one


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return load_config({"store.url": f"sqlite:///{tmp_path}/a.db", "prices.sources": ["snapshot"]})


@pytest.mark.parametrize(
    ("plan", "tier", "provider", "counts"),
    [
        ("local/4xL4", Tier.LOCAL, "local", (1, 4)),
        ("cluster/lab/8xL4", Tier.CLUSTER, "lab", (1, 8)),
        ("cluster/lab/2x8xL4", Tier.CLUSTER, "lab", (2, 16)),
        ("cluster/a/b/16x4xL4", Tier.CLUSTER, "a/b", (16, 64)),
    ],
)
def test_ids_of_one_s_own(config, plan, tier, provider, counts):
    facts = given_facts(PlanRequest(plan=plan), config, Listener())
    assert (facts.tier, facts.provider, facts.gpu) == (tier, provider, "L4")
    assert (facts.num_nodes, facts.num_gpus) == counts


def test_nodes_of_a_cloud_cost_and_count_together(config):
    one, four = (
        given_facts(PlanRequest(plan=f"aws/{machine}/us-east-1/on-demand"), config, Listener())
        for machine in ("p4d.24xlarge", "4xp4d.24xlarge")
    )
    assert (one.num_nodes, one.num_gpus) == (1, 8)
    assert (four.num_nodes, four.num_gpus, four.instance_type) == (4, 32, "p4d.24xlarge")
    assert four.usd_per_h == pytest.approx(4 * (one.usd_per_h or 0.0))
    assert four.preemptions_per_h == pytest.approx((one.preemptions_per_h or 0.0) * times_of_one(4))


def test_what_is_given_wins_over_an_id(config):
    plan = "aws/2xp4d.24xlarge/us-east-1/on-demand"
    facts = given_facts(PlanRequest(plan=plan, num_nodes=3), config, Listener())
    assert (facts.num_nodes, facts.num_gpus) == (3, 16)
    named = given_facts(PlanRequest(gpu="H100-SXM-80GB:8x4"), config, Listener())
    assert (named.num_nodes, named.num_gpus) == (4, 32)
    assert given_facts(PlanRequest(gpu="H100-SXM-80GB:8"), config, Listener()).num_nodes is None


@pytest.mark.parametrize("plan", ["local/2x", "cluster/lab", "aws/0xp4d.24xlarge/x", "cluster/lab/x8xL4"])
def test_other_texts_are_no_ids(config, plan):
    with pytest.raises(InputError, match="not the id of a plan"):
        given_facts(PlanRequest(plan=plan), config, Listener())
