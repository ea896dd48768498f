"""``advisor policy`` as a person types it."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.cli import Answer, Shell, assert_plain_error

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "policies"
BANK = (str(EXAMPLES / "bank.yaml"), str(EXAMPLES / "bank-fraud-team.yaml"))
ORG = """\
version: 1
name: org
layer: organisation
deny:
  regions: [us-gov-*, ap-*]
  gpus: [A100]
limits: {usd_per_hour: 20, usd_per_month: 100}
approval: [{over_usd_per_job: 10, by: team lead}]
lock: [deny]
"""


@pytest.fixture
def shell(tmp_path):
    """A folder with one policy."""
    shell = Shell(folder=tmp_path)
    shell.write("org.yaml", ORG)
    return shell


def explain(shell: Shell, *arguments: str) -> Answer:
    """With the dated prices that are shipped, and no others."""
    return shell.run("policy", "explain", "org.yaml", *arguments, ADVISOR_PRICES__SOURCES="[snapshot]")


# --- check -------------------------------------------------------------------------------------------


def test_check_says_what_was_read(shell):
    answer = shell.run("policy", "check", "org.yaml", *BANK, COLUMNS="200")
    assert (answer.code, answer.err) == (0, "")
    for word in ("org.yaml", "organisation", "fraud detection", "bank-fraud-team.yaml"):
        assert word in answer.out


def test_check_gives_faults_to_programs(shell):
    assert shell.run("policy", "check", "org.yaml", "--json").document["files"] == [
        {"file": "org.yaml", "layer": "organisation", "name": "org", "num_rules": 6}
    ]
    shell.write("team.yaml", "version: 1\nname: x\nlayer: team\nlimts: {}\n")
    answer = shell.run("policy", "check", "org.yaml", "team.yaml", "absent.yaml", "--json")
    assert answer.code == 2
    first, second = answer.document["faults"]
    assert first == {"file": "team.yaml", "line": 4, "message": "unknown key 'limts'. Did you mean 'limits'?"}
    assert (second["file"], second["line"]) == ("absent.yaml", None)


def test_without_files_the_usage_is_told(shell):
    assert_plain_error(shell.run("policy", "check"), 2, "FILES")


# --- show and schema ---------------------------------------------------------------------------------


def test_show_names_where_each_rule_stands(shell):
    shell.write("team.yaml", "version: 1\nname: x\nlayer: team\nlimits: {usd_per_hour: 5}\n")
    answer = shell.run("policy", "show", "org.yaml", "team.yaml", COLUMNS="200")
    assert answer.code == 0
    rows = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert "limits.usd_per_hour 5 team.yaml:4 team in force" in rows
    assert "limits.usd_per_hour 20 org.yaml:7 organisation overruled by team.yaml:4" in rows
    assert "approval by team lead over 10 USD a job org.yaml:8 organisation in force" in rows
    assert "lock deny org.yaml:9 organisation in force" in rows
    assert "A100 (means A100-PCIE-40GB, A100-PCIE-80GB, A100-SXM-40GB, A100-SXM-80GB)" in answer.out


def test_show_gives_rules_to_programs(shell):
    shell.write("team.yaml", "version: 1\nname: x\nlayer: team\nlimits: {usd_per_hour: 5}\n")
    document = shell.run("policy", "show", "org.yaml", "team.yaml", "--json").document
    assert document["schema_version"]
    rules = {(rule["key"], rule["file"]): rule for rule in document["rules"]}
    assert rules["limits.usd_per_hour", "org.yaml"] == {
        "key": "limits.usd_per_hour", "value": 20.0, "means": [], "file": "org.yaml", "line": 7,
        "layer": "organisation", "overruled_by": "team.yaml:4",
    }  # fmt: skip
    assert rules["limits.usd_per_hour", "team.yaml"]["overruled_by"] is None
    assert rules["deny.gpus", "org.yaml"]["means"][0] == "A100-PCIE-40GB"
    assert document["locks"] == [{"key": "deny", "file": "org.yaml", "line": 9, "layer": "organisation"}]


def test_csv_has_a_line_for_each_rule(shell):
    lines = shell.run("policy", "show", "org.yaml", "--format", "csv").out.splitlines()
    assert lines[0] == "Rule,Value,From,Layer,State"
    assert len(lines) == 1 + 6 + 1


def test_show_refuses_what_check_refuses(shell):
    shell.write("bad.yaml", "version: 1\n")
    assert_plain_error(shell.run("policy", "show", "bad.yaml"), 2, "'layer' is missing")


def test_schema_is_the_published_one(shell):
    answer = shell.run("policy", "schema")
    assert answer.code == 0
    assert json.loads(answer.out) == json.loads((ROOT / "docs" / "policy.schema.json").read_text())


# --- explain -----------------------------------------------------------------------------------------


def test_explain_a_plan_of_the_catalog(shell):
    answer = explain(shell, "--plan", "aws/p4d.24xlarge/us-east-1/on-demand", "--json")
    assert answer.code == 3
    document = answer.document
    assert document["removed"] is True
    assert (document["plan"]["gpu"], document["plan"]["num_gpus"]) == ("A100-SXM-40GB", 8)
    effects = {(rule["key"], str(rule["value"])): rule["effect"] for rule in document["rules"]}
    assert effects["deny.regions", "['us-gov-*']"] == "keeps"
    assert effects["deny.gpus", "['A100']"] == "removes"
    assert effects["limits.usd_per_hour", "20.0"] == "removes"
    assert effects["limits.usd_per_month", "100.0"] == "unknown"
    assert_plain_error(
        answer, 3, "the policy removes this plan: deny.gpus: A100 (org.yaml:6) and limits.usd_per_hour: 20"
    )


def test_what_is_given_goes_before_the_catalog(shell):
    answer = explain(
        shell, "--plan", "aws/g4dn.xlarge/us-east-1/on-demand", "--usd-per-hour", "20.01", "--json"
    )
    assert answer.document["plan"]["gpu"] == "T4"
    assert answer.code == 3
    assert explain(shell, "--plan", "aws/g4dn.xlarge/us-east-1/on-demand").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--region", "AP-south-1"), 3, "deny.regions: ap-*"),
        (("--region", "eu-west-1"), 0, ""),
        (("--gpu", "A100-SXM-40GB:8"), 3, "deny.gpus: A100 (org.yaml:6)"),
        (("--gpu", "NVIDIA H100 80GB HBM3"), 0, ""),
        (("--usd-per-hour", "20"), 0, ""),
        (("--usd-per-hour", "20.01"), 3, "limits.usd_per_hour: 20 (org.yaml:7)"),
        (("--usd-per-job", "60", "--spent-this-month", "40"), 0, ""),
        (("--usd-per-job", "60", "--spent-this-month", "41"), 3, "limits.usd_per_month: 100 (org.yaml:7)"),
        (("--plan", "local/2xA100-SXM-80GB"), 3, "deny.gpus: A100"),
        (("--plan", "local/2xL4"), 0, ""),
        (("--plan", "cluster/a/b/4xT4", "--usd-per-hour", "21"), 3, "limits.usd_per_hour"),
        (("--plan", "aws/p99.large/ap-east-1/spot"), 3, "no price of p99.large in ap-east-1 (spot) is known"),
        (("--plan", "p4d.24xlarge"), 2, "'p4d.24xlarge' is not the id of a plan: write PROVIDER/"),
        (("--plan", "aws//us-east-1/spot"), 2, "is not the id of a plan"),
        (("--plan", "aws/p4d.24xlarge/us-east-1/spt"), 2, "Did you mean 'spot'?"),
        (
            ("--plan", "asw/p4d.24xlarge/us-east-1/spot"),
            2,
            "no prices of provider 'asw'. Did you mean 'aws'?",
        ),
        (("--plan", "local/2xL5"), 2, "no GPU is called 'L5'"),
        (("--gpu", "A100"), 2, "'A100' means several GPUs"),
        (("--gpu", "L4:1..8"), 2, "a plan has one"),
        (("--usd-per-hour", "-1"), 2, "must be 0 or more, got -1"),
        (("--usd-per-job", "nan"), 2, "must be 0 or more, got nan"),
        (("--market", "free"), 2, "free"),
    ],
)
def test_explain(shell, arguments, code, words):
    assert_plain_error(explain(shell, *arguments), code, words)


def test_explain_says_who_must_agree_and_what_is_not_known(shell):
    answer = explain(shell, "--provider", "aws", "--usd-per-job", "11")
    assert answer.code == 0
    rows = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert (
        "approval: by team lead over 10 USD a job org.yaml:8 needs approval the job costs $11.00 at p90"
        in rows
    )
    assert "deny.gpus: A100 org.yaml:6 unknown the GPU is not known" in rows


def test_explain_knows_clusters_and_spot_terms_of_the_settings(shell):
    shell.write(
        ".advisor.yaml", "clusters:\n- {name: lab, gpu: T4, num_gpus: 4}\nspot: {checkpoint_interval: null}\n"
    )
    shell.write("org.yaml", "version: 1\nname: x\nlayer: team\nspot: {needs_checkpoints: true}\n")
    assert explain(shell, "--provider", "lab", "--json").document["plan"]["tier"] == "cluster"
    assert explain(shell, "--provider", "local", "--json").document["plan"]["tier"] == "local"
    assert_plain_error(
        explain(shell, "--provider", "aws", "--market", "spot"),
        3,
        "spot.needs_checkpoints: true (org.yaml:4)",
    )
    shell.write(".advisor.yaml", "clusters:\n- {name: lab, gpu: T4, num_gpus: 4}\n")
    rented = explain(shell, "--provider", "aws", "--market", "spot")
    # No script is looked at.
    assert (rented.code, "the script's use of checkpoints is not known" in rented.out) == (0, True)
    shell.write(
        ".advisor.yaml", "clusters:\n- {name: lab, gpu: T4, num_gpus: 4}\nspot: {checkpoints: saves}\n"
    )
    assert "it saves checkpoints" in explain(shell, "--provider", "aws", "--market", "spot").out
    assert explain(shell, "--provider", "aws", "--market", "on-demand").code == 0


def test_the_bank_removes_america_and_spot(shell):
    answer = shell.run(
        "policy", "explain", *BANK, "--plan", "aws/p4d.24xlarge/us-east-1/spot",
        ADVISOR_PRICES__SOURCES="[snapshot]",
    )  # fmt: skip
    assert_plain_error(
        answer, 3, "allow.regions: eu-*, europe-*", "bank.yaml:8", "spot.allowed: false", "allow.markets"
    )
