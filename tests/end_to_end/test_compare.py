"""``advisor compare`` and ``advisor recommend --curve`` as a person types them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import ALL_REGIONS, Shell, assert_plain_error

JOB = ("--epochs", "90", "--offline")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("compare")
    write_trace(make_trace(), folder / "t.json.gz")
    cluster = "clusters: [{name: lab, gpu: A100-SXM-80GB, num_gpus: 8, wait_p50: 1m, wait_p90: 2h}]\n"
    (folder / ".config/advisor").mkdir(parents=True)
    (folder / ".config/advisor/config.yaml").write_text(cluster)
    return Shell(folder=folder)


def test_two_machines_stand_line_by_line_with_what_decides_above(shell):
    answer = shell.run("compare", "t.json.gz", "L4:4", "p4d.24xlarge on-demand", *JOB)
    assert answer.code == 0
    first = answer.out.partition(".\n")[0]
    assert "faster" in first
    assert "At $2.00 (--value-of-time) take" in " ".join(answer.out.split())
    assert "4 x L4" in answer.out
    assert "8 x A100-SXM-40GB" in answer.out
    assert "'L4:4' is " in answer.err
    assert "the cheapest of" in answer.err


def test_a_name_for_the_cheapest_tells_of_a_guess_that_reads_as_cheaper(shell):
    answer = shell.run("compare", "t.json.gz", "L40S:1", "L4:1", *JOB)
    assert re.search(
        r"'L40S:1' is aws/\S+, the cheapest of \d+ plans .* was never quoted counts at its p90", answer.err
    )
    alone = shell.run("compare", "t.json.gz", "L40S:1 on-demand", "L4:1", *JOB)
    assert "never quoted" not in alone.err.partition("'L4:1'")[0]


def test_two_p5_nodes_or_four_p4d(shell):
    pair = ("compare", "t.json.gz", "2xp5.48xlarge on-demand", "A100-SXM-40GB:8x4 aws on-demand", *JOB)
    facts = shell.run(*pair, "--json").document
    assert [(facts[name]["num_nodes"], facts[name]["num_gpus"]) for name in "ab"] == [(2, 16), (4, 32)]
    assert facts["a"]["id"].startswith("aws/2xp5.48xlarge/")
    assert_plain_error(shell.run(*pair, "--max-nodes", "2"), 2, "no plan has 'A100-SXM-40GB:8x4'")


def test_a_name_of_several_plans_is_another_than_the_one_beside_it(shell):
    """Was: `g6.xlarge` meant its cheapest plan, spot, and was compared with itself."""
    shell = replace(shell, regions=ALL_REGIONS)
    answer = shell.run("compare", "t.json.gz", "g6.xlarge spot", "g6.xlarge", *JOB, "--json")
    assert answer.code == 0, answer.err
    plans = {side: answer.document[side]["id"] for side in ("a", "b")}
    assert plans["a"] != plans["b"]
    # The cheapest of all is the other side's.
    assert "'g6.xlarge spot' is aws/" in answer.err
    assert " other plans that it may mean" in answer.err.partition("'g6.xlarge' is aws/")[2]
    names = "aws/g6.xlarge/us-east-1/on-demand", "g6.xlarge us-east-1 on-demand"
    assert_plain_error(shell.run("compare", "t.json.gz", *names, *JOB), 2, "same plan", names[0])


def test_a_job_without_a_length_and_a_missing_plan_are_errors(shell):
    assert_plain_error(shell.run("compare", "t.json.gz", "L4:1", "L4:4", "--offline"), 2, "--epochs")
    assert_plain_error(shell.run("compare", "t.json.gz", "L4:1", *JOB), 2, "Missing argument 'B'")


def test_two_plans_that_both_fail_end_with_4(shell):
    answer = shell.run("compare", "t.json.gz", "L4:1", "L4:4", *JOB, "--deadline", "1m")
    assert_plain_error(answer, 4, "neither plan does the job")
    assert answer.out.startswith("Neither does the job: not A (")


def test_a_curve_names_the_number_up_to_which_more_gpus_pay(shell):
    curve = ("recommend", "t.json.gz", *JOB, "--curve", "aws A10G on-demand")
    facts = shell.run(*curve, "--json").document
    assert [point["num_gpus"] for point in facts["points"]] == [1, 4, 8]
    totals = {point["id"]: point["total_usd"] for point in facts["points"]}
    assert facts["best"] == min(totals, key=lambda plan_id: totals[plan_id])
    shown = shell.run(*curve).out
    assert "8 x A10G |" in shown
    assert "pay" in shown.splitlines()[0]


def test_a_curve_beside_another_view_or_of_no_plan_is_an_error(shell):
    job = ("recommend", "t.json.gz", *JOB)
    assert_plain_error(shell.run(*job, "--curve", "L4", "--explain", "1"), 2, "give one of them")
    assert_plain_error(shell.run(*job, "--curve", "Z9"), 2, "no plan has 'Z9'")
