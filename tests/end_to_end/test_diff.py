"""``advisor diff`` as a person types it."""

import json
import os
import re
import subprocess
from dataclasses import replace

import pytest
import yaml

from advisor.core.values import Op
from advisor.formats.trace_files import write_trace
from tests.builders import make_op, make_trace
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.programs import write_program
from tests.test_docs import ROOT

JOB = ("--epochs", "90", "--offline")


def heavier(op: Op, times: int) -> Op:
    return replace(op, flops=op.flops * times, bytes=op.bytes * times, count=op.count * times)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    base = make_trace()
    more = tuple(heavier(op, 3) for op in base.ops)
    write_trace(base, folder / "base.json.gz")
    write_trace(replace(base, ops=more), folder / "slow.json.gz")
    large = replace(base.memory, activation_bytes=2**41, peak_bytes=2**41)
    write_trace(replace(base, memory=large), folder / "large.json.gz")
    write_trace(replace(base, ops=(*base.ops, make_op("aten::cumsum", count=500))), folder / "cumsum.json.gz")
    return folder


@pytest.fixture
def shell(folder):
    return Shell(folder=folder)


def test_a_heavier_script_costs_more(shell):
    answer = shell.run("diff", "base.json.gz", "slow.json.gz", *JOB)
    assert answer.code == 0
    assert answer.out.startswith("+$")
    assert "per run on" in answer.out.splitlines()[0]


def test_no_change_is_no_cost_and_no_table_of_operators(shell):
    answer = shell.run("diff", "base.json.gz", "base.json.gz", *JOB, "--fail-above", "0%")
    assert (answer.code, answer.out[:5]) == (0, "+$0.0")
    assert "(+0.0 %)" in answer.out
    assert "What differs" not in answer.out


def test_the_operator_that_did_it_is_named(shell):
    facts = shell.run("diff", "base.json.gz", "cumsum.json.gz", *JOB, "--json").document
    worst = max(facts["operators"], key=lambda part: abs(part["head_s"] - part["base_s"]))
    assert facts["operators"][0] == worst
    assert "cumsum" in [part["name"] for part in facts["operators"][:2]]
    cumsum = next(part for part in facts["operators"] if part["name"] == "cumsum")
    assert (cumsum["base_calls"], cumsum["head_calls"], cumsum["base_s"]) == (0, 500, 0.0)


@pytest.mark.parametrize("head", ["base", "slow", "cumsum", "large"])
def test_what_the_parts_take_is_the_training(shell, head):
    """On the machine recommended before, even where the change does not fit there any more."""
    facts = shell.run("diff", "base.json.gz", f"{head}.json.gz", *JOB, "--json").document
    for side, option in (("base_s", facts["change"]["base"]), ("head_s", facts["change"]["same"])):
        whole_s = option["iterations"] * option["iteration_s"]["p50"]
        assert sum(part[side] for part in facts["operators"]) == pytest.approx(whole_s)


def test_figures_agree_with_recommend(shell):
    facts = shell.run("diff", "base.json.gz", "slow.json.gz", *JOB, "--json").document
    for name, file in (("base", "base.json.gz"), ("head", "slow.json.gz")):
        alone = shell.run("recommend", file, *JOB, "--json").document
        chosen = next(o for o in alone["options"] if o["id"] == alone["recommended"])
        assert facts["change"][name]["id"] == chosen["id"]
        assert facts["change"][name]["cost_usd"] == chosen["cost_usd"]
    same, base = facts["change"]["same"]["cost_usd"]["p50"], facts["change"]["base"]["cost_usd"]["p50"]
    assert facts["change"]["relative"] == pytest.approx(same / base - 1)


def test_above_the_threshold_the_answer_is_shown_and_the_code_is_5(shell):
    answer = shell.run("diff", "base.json.gz", "slow.json.gz", *JOB, "--fail-above", "10%")
    assert answer.code == 5
    assert answer.out.startswith("+$")
    assert_plain_error(answer, 5, "at most 10.0% is allowed")


def test_where_nothing_fits_any_more_the_code_is_4(shell):
    answer = shell.run("diff", "base.json.gz", "large.json.gz", *JOB)
    assert answer.code == 4
    assert "After the change no machine does the job" in answer.out


def test_markdown_is_a_whole_comment_whose_last_row_makes_it_add_up(shell):
    out = shell.run("diff", "base.json.gz", "cumsum.json.gz", *JOB, "--format", "markdown").out
    assert out.startswith("### What a change of train.py costs\n\n+$")
    assert "**Machines, before and after**\n\n| GPUs, and where |" in out
    assert re.search(r"\*\*Which operators did it, on \d+ x \S+\*\*\n\n\| Operator \|", out)
    assert "\n| all others |" in out


def test_csv_has_every_operator(shell):
    out = shell.run("diff", "base.json.gz", "cumsum.json.gz", *JOB, "--format", "csv").out
    assert out.startswith("name,phase,base_calls,head_calls,base_s,head_s\n")
    assert "\ncumsum,forward,0,500,0.0," in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--offline",), "--epochs"),
        ((*JOB, "--fail-above", "10"), "write one of 0 or more, such as 10%"),
        ((*JOB, "--fail-above", "-3%"), "--fail-above '-3%' is no percentage"),
        ((*JOB, "--backend", "fake"), "--backend is for a script to profile"),
    ],
)
def test_wrong_uses(shell, arguments, message):
    assert_plain_error(shell.run("diff", "base.json.gz", "slow.json.gz", *arguments), 2, message)


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_a_revision_against_the_working_tree(warm_folder, tmp_path):
    """A deeper network by a file that the script reads, before and after, from git; then against a trace."""
    script = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "depth = int(open('depth.txt').read())\n"
        "model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(depth)]).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "data = DataLoader(TensorDataset(torch.randn(4096, 512)), batch_size=512)\n"
        "for epoch in range(9):\n    for (x,) in data:\n        optimizer.zero_grad()\n"
        "        model(x.cuda()).square().mean().backward()\n        optimizer.step()\n"
    )
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "depth.txt").write_text("2")
    names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "shallow")):
        subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "depth.txt").write_text("8")
    shell = Shell(folder=tmp_path)
    python = os.path.relpath(warm_folder / "bin" / "python", tmp_path)
    script = ("--backend", "fake", "--python", python)
    answer = shell.run("diff", "main:train.py", "train.py", *JOB, *script, "--json")
    assert answer.code == 0, answer.err
    calls = {
        (part["name"], part["phase"]): (part["base_calls"], part["head_calls"])
        for part in json.loads(answer.out)["operators"]
    }
    assert calls["addmm", "forward"] == (2, 8)
    write_trace(make_trace(), tmp_path / "base.json.gz")
    mixed = shell.run("diff", "base.json.gz", "train.py", *JOB, "--backend", "fake")
    assert mixed.code == 0, mixed.err


def steps(name):
    workflow = yaml.safe_load((ROOT / "examples" / "github" / name).read_text())
    return workflow, [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_workflow_that_runs_foreign_code_has_no_secrets_and_cannot_write():
    workflow, _ = steps("price-profile.yml")
    text = (ROOT / "examples" / "github" / "price-profile.yml").read_text()
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow[True] == "pull_request"  # YAML takes `on` for a truth
    assert "secrets." not in text
    assert "github.token" not in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout")
    assert "--sandbox" in text


def test_the_workflow_with_rights_runs_no_foreign_code():
    workflow, parts = steps("price-comment.yml")
    assert "workflow_run" in workflow[True]
    assert not [step for step in parts if "checkout" in step.get("uses", "")]
    scripts = "\n".join(step.get("run", "") for step in parts)
    assert "train.py" not in scripts
    # A line of a message could begin with an order to the runner.
    assert "cat messages.txt" not in scripts
    # Nothing that a pull request can choose is pasted into a shell.
    assert all("${{" not in line or "steps.price.outputs.code" in line for line in scripts.splitlines())


@pytest.mark.parametrize(
    ("code", "state"), [("0", "success"), ("5", "failure"), ("4", "failure"), ("2", "error"), ("", "error")]
)
def test_the_commit_gets_a_status_that_a_branch_rule_can_require(tmp_path, code, state):
    workflow, parts = steps("price-comment.yml")
    assert workflow["permissions"]["statuses"] == "write"
    (step,) = [step for step in parts if "statuses" in step.get("run", "")]
    assert step["if"] == "always()"
    write_program(tmp_path / "gh", 'printf "%s\\n" "$@"')
    given = {"CODE": code, "COMMIT": "c0ffee", "REPOSITORY": "o/r", "RUN_URL": "https://x/1"}
    done = subprocess.run(
        ["sh", "-ec", step["run"]], env=given | {"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True
    )
    said = done.stdout.decode().splitlines()
    assert said[:4] == ["api", "--method", "POST", "repos/o/r/statuses/c0ffee"]
    assert f"state={state}" in said


def test_the_commands_of_the_workflows_are_ours(shell):
    for name in ("price-profile.yml", "price-comment.yml"):
        _, parts = steps(name)
        for line in "\n".join(step.get("run", "") for step in parts).replace("\\\n", " ").splitlines():
            if "advisor diff" in line:
                words = line.split("advisor diff")[1].split(">")[0].split()
                known = shell.run("diff", "--help").out
                assert all(word in known for word in words if word.startswith("--"))
