"""Policies and explanations as tables and JSON; the commands' tests see them whole."""

from advisor.core.values import Tier
from advisor.report.policy_verdicts import check_document, explained_document, policy_document
from advisor.site_files.policy_files import check_policies
from recommender.conditions import Facts, Spent
from tests.unit.recommender.policy.files import policy_of, write
from tests.unit.report.printed import json_of, on_screen


def test_a_check_with_faults_is_empty_for_people(tmp_path):
    checked = check_policies(write(tmp_path, org="x: 1", team="limits: {usd_per_job: 1}"))
    assert on_screen(check_document(checked), 80) == ""
    document = json_of(check_document(checked))
    assert (document["files"], len(document["faults"])) == ([], 1)


def test_overruled_rules_count_as_rules_of_their_file(tmp_path):
    paths = write(tmp_path, org="limits: {usd_per_job: 2}", team="limits: {usd_per_job: 1}")
    assert [file["num_rules"] for file in json_of(check_document(check_policies(paths)))["files"]] == [1, 1]


def test_values_keep_their_types_in_json(tmp_path):
    policy = policy_of(
        tmp_path,
        org="allow: {regions: [a, b]}\nlimits: {gpus_per_job: 8}\nspot: {allowed: false}\n"
        "prefer: {tier: cluster, if: {wait_p90_under: 90m}}\nobjective: {pick: safest}\n"
        "approval: [{over_usd_per_job: 1.5, by: me}]",
    )
    assert {rule["key"]: rule["value"] for rule in json_of(policy_document(policy))["rules"]} == {
        "allow.regions": ["a", "b"],
        "limits.gpus_per_job": 8,
        "spot.allowed": False,
        "prefer": {"tier": "cluster", "if": {"wait_p90_under": "1h30m"}},
        "objective.pick": "safest",
        "approval": {"over_usd_per_job": 1.5, "by": "me"},
    }


def test_an_infinite_cost_is_null_in_json(tmp_path):
    policy = policy_of(tmp_path, org="limits: {usd_per_job: 5}\napproval: [{over_usd_per_job: 1, by: me}]")
    facts = Facts(usd_per_job=float("inf"), spent=Spent(all_usd=1.0, project_usd=0.5))
    document = json_of(explained_document(facts, policy))
    assert document["plan"]["usd_per_job"] is None
    assert document["plan"]["spent"] == {
        "all_usd": 1.0,
        "project_usd": 0.5,
        "all_num_unknown": 0,
        "project_num_unknown": 0,
    }
    assert (document["removed"], document["approvals"]) == (True, ["me"])


def test_what_a_preference_and_an_objective_say_of_one_plan(tmp_path):
    policy = policy_of(tmp_path, org="prefer: {tier: cluster}\nobjective: {pick: safest}")
    rules = {}
    for tier in Tier:
        rules[tier] = {
            rule["key"]: rule["effect"]
            for rule in json_of(explained_document(Facts(tier=tier), policy))["rules"]
        }
    assert rules[Tier.CLUSTER] == {"prefer": "keeps", "objective.pick": "does not apply"}
    assert rules[Tier.CLOUD] == rules[Tier.LOCAL] == {"prefer": "unknown", "objective.pick": "does not apply"}


def test_an_explanation_breaks_no_word_in_eighty_columns(tmp_path):
    regions = [f"northamerica-northeast{number}" for number in range(12)]
    policy = policy_of(tmp_path, org=f"allow: {{regions: {regions}}}\nlimits: {{usd_per_hour: 100}}")
    facts = Facts(region="us-east-1", usd_per_h=50.0)
    lines = on_screen(explained_document(facts, policy), 80).splitlines()
    # A path may be longer than the terminal, and stays whole to be copied.
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80
    words = " ".join(lines).replace(",", "").split()
    assert all(region in words for region in (*regions, "us-east-1"))
    assert lines[0].startswith("removes: allow.regions: northamerica-northeast0")
    assert "keeps: limits.usd_per_hour: 100" in lines
    assert sum(f"{tmp_path}" in line for line in lines) == 2
    assert "Says" in on_screen(explained_document(facts, policy), 160).splitlines()[1]
