"""``--nodes`` and ``--max-nodes`` as a person types them: the price is of the run, not of a node."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_op, make_trace
from tests.end_to_end.cli import ALL_REGIONS, Answer, Shell, assert_plain_error

JOB = ("recommend", "small.json.gz", "--iterations", "200000", "--offline")


@pytest.fixture
def shell(tmp_path):
    ops = (make_op("aten::mm", flops=10**13, num_bytes=10**9),)
    write_trace(make_trace(ops=ops), tmp_path / "small.json.gz")
    return Shell(folder=tmp_path)


def options(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.err
    return {option["id"]: option for option in answer.document["options"]}


def test_two_p5_nodes_or_four_p4d(shell):
    asked = ("--gpu", "H100-SXM-80GB:8x2", "--provider", "aws", "--market", "on-demand")
    two = options(shell.run(*JOB, *asked, "--json"))
    assert two
    for option in two.values():
        assert (option["num_nodes"], option["gpus_per_node"], option["num_gpus"]) == (2, 8, 16)
        assert option["usd_per_h"] == pytest.approx(2 * option["list_usd_per_h"])
        assert option["id"].startswith("aws/2xp5")
        assert any(note["code"] == "gang-assumed" for note in option["reason_findings"])
        assert "torchrun --nnodes 2 --nproc-per-node 8" in " ".join(option["script_changes"])
    four = options(shell.run(*JOB, "--gpu", "A100-SXM-40GB", "--nodes", "4", "--provider", "aws", "--json"))
    assert {option["num_nodes"] for option in four.values()} == {4}
    assert {option["instance_type"] for option in four.values()} == {"p4d.24xlarge"}


def test_up_to_four_nodes_stand_beside_one(shell):
    gpu = ("--gpu", "A100-SXM-40GB", "--provider", "aws")
    one, four = (options(shell.run(*JOB, *gpu, *more, "--json")) for more in ((), ("--max-nodes", "4")))
    assert {option["num_nodes"] for option in four.values()} == {1, 2, 4}
    assert {name: one[name]["time_s"] for name in one} == {name: four[name]["time_s"] for name in one}
    assert {name: one[name]["cost_usd"] for name in one} == {name: four[name]["cost_usd"] for name in one}
    table = shell.run(*JOB, *gpu, "--max-nodes", "4", "--all")
    assert "2 x 8 x A100-SXM-40GB" in table.out
    assert "aws 2 x p4d.24xlarge" in table.out
    assert options(shell.run(*JOB, *gpu, "--max-nodes", "1", "--json")) == one


def test_sixteen_gpus_that_no_machine_has_are_two_nodes_of_eight(shell):
    sixteen = options(shell.run(*JOB, "--gpu", "H100-SXM-80GB:16", "--json"))
    assert {(option["num_nodes"], option["num_gpus"]) for option in sixteen.values()} == {(2, 16)}
    refused = shell.run(*JOB, "--gpu", "H100-SXM-80GB:16", "--max-nodes", "1")
    assert_plain_error(refused, 2, "no machine has as many GPUs as 'H100-SXM-80GB:16' asks for")


def test_a_plan_of_nodes_is_explained_by_its_id_and_by_a_policy(shell):
    two = options(shell.run(*JOB, "--gpu", "A100-SXM-40GB", "--nodes", "2", "--json"))
    plan_id = next(name for name in two if name.endswith("/on-demand"))
    explained = shell.run(*JOB, "--gpu", "A100-SXM-40GB", "--nodes", "2", "--explain", plan_id)
    assert explained.code == 0, explained.err
    assert "2 nodes at $" in explained.out
    assert "network: efa, 400 Gbit/s a node" in explained.out
    rule = "limits: {nodes_per_job: 1}\n"
    shell.write("org.yaml", f"version: 1\nname: acme\nlayer: organisation\n{rule}")
    judged = shell.run("policy", "explain", "org.yaml", "--plan", plan_id, "--json")
    assert judged.code == 3
    facts = judged.document["plan"]
    assert (facts["num_nodes"], facts["num_gpus"]) == (2, 16)
    assert facts["usd_per_h"] == pytest.approx(two[plan_id]["usd_per_h"])


def test_a_policy_and_a_quota_see_the_whole_plan(shell):
    asked = (*JOB, "--gpu", "A100-SXM-40GB", "--provider", "aws", "--max-nodes", "4")
    shell.write("org.yaml", "version: 1\nname: acme\nlayer: organisation\nlimits: {gpus_per_job: 16}\n")
    under = options(shell.run(*asked, "--policy", "org.yaml", "--json"))
    removed = {option["num_nodes"] for option in under.values() if option["removed_by"] == "policy"}
    assert removed == {4}
    shell.write(".advisor.yaml", "quotas:\n- {provider: aws, vcpus: 192}\n")
    within = options(shell.run(*asked, "--json"))
    blocked = {o["num_nodes"] for o in within.values() if "quota" in (o["removed_by"] or "")}
    assert blocked == {4}
    nothing = shell.run(*JOB, "--gpu", "A100-SXM-40GB", "--provider", "aws", "--nodes", "4")
    assert nothing.code == 4
    assert "nothing that your quotas let start is feasible. aws 4 x p4d.24xlarge" in nothing.err
    assert "it has 384 vCPU, and 192 are allowed" in nothing.err


def test_a_cluster_of_several_nodes(shell):
    lab = (
        "clusters:\n- {name: lab, gpu: H100-SXM-80GB, num_gpus: 8, num_nodes: 4, usd_per_gpu_h: 1.5,"
        " network: infiniband 8x400 Gbit, wait_p50: 1h, wait_p90: 4h}\n"
    )
    shell.write(".advisor.yaml", lab)
    own = {
        name: option
        for name, option in options(shell.run(*JOB, "--gpu", "H100-SXM-80GB", "--json")).items()
        if option["tier"] == "cluster"
    }
    assert {option["num_nodes"] for option in own.values()} == {1, 2, 4}
    four = own["cluster/lab/4x8xH100-SXM-80GB"]
    assert four["usd_per_h"] == 48.0
    assert four["wait_s"]["p50"] > own["cluster/lab/8xH100-SXM-80GB"]["wait_s"]["p50"]
    shell.write(".advisor.yaml", lab.replace("infiniband 8x400", "string 8x400"))
    wrong = shell.run(*JOB)
    assert_plain_error(wrong, 2, "cluster 'lab': 'string 8x400 Gbit' is no network")


def test_a_machine_that_cannot_be_clustered_says_so(shell):
    shell = replace(shell, regions=ALL_REGIONS)
    rows = (
        "provider,instance_type,gpu,num_gpus,region,market,usd_per_h,as_of\n"
        "acme,box,RTX-4090,4,home,on-demand,2.0,2026-11-20\n"
    )
    shell.write("rates.csv", rows)
    shell.write(".advisor.yaml", "")
    sources = {"ADVISOR_PRICES__OPTIONS": '{"custom": {"files": ["rates.csv"]}}'}
    refused = shell.run(*JOB, "--gpu", "RTX-4090", "--nodes", "2", "--provider", "*", **sources)
    assert refused.code != 0
    assert "--nodes 2" in refused.err
    assert "Without --nodes there is 1" in refused.err
    alone = shell.run(*JOB, "--gpu", "RTX-4090", "--max-nodes", "4", "--provider", "*", "--json", **sources)
    assert {option["num_nodes"] for option in options(alone).values()} == {1}
    assert "each stays alone" in alone.err


def test_a_change_is_priced_on_several_nodes_too(shell):
    ops = (make_op("aten::mm", flops=2 * 10**13, num_bytes=10**9),)
    write_trace(make_trace(ops=ops), shell.folder / "slower.json.gz")
    asked = ("--gpu", "A100-SXM-40GB", "--nodes", "2", "--iterations", "200000", "--offline", "--json")
    change = shell.run("diff", "small.json.gz", "slower.json.gz", *asked).document["change"]
    assert change["base"]["id"].startswith(("aws/2xp4d", "gcp/2xa2"))
    assert change["relative"] > 0.5
