"""Files of several layers: what wins, what is locked, what contradicts."""

from itertools import permutations
from pathlib import Path

import pytest

from advisor.site_files.policy_files import check_policies, read_policies
from recommender.policy.merge import Policy
from recommender.policy.model import LOCKABLE
from tests.unit.recommender.policy.files import policy_of, write


def texts(policy: Policy) -> list[str]:
    return [rule.text for rule in policy.rules]


def fault_of(folder: Path, **bodies: str) -> str:
    (fault,) = check_policies(write(folder, **bodies)).faults
    return str(fault)


def test_lists_of_all_layers_are_in_force(tmp_path):
    policy = policy_of(
        tmp_path,
        project="deny: {gpus: [K80]}",
        org="allow: {regions: [eu-*]}\ndeny: {gpus: [V100*]}",
        team="allow: {regions: [eu-west-*]}",
    )
    assert texts(policy) == [
        "allow.regions: eu-*", "deny.gpus: V100*", "allow.regions: eu-west-*", "deny.gpus: K80",
    ]  # fmt: skip
    assert policy.overruled == ()


@pytest.mark.parametrize(
    ("key", "values", "winner"),
    [
        ("limits.usd_per_hour", ("40", "30", "50"), "team"),
        ("limits.usd_per_job", ("1", "2", "3"), "org"),
        ("limits.gpus_per_job", ("8", "8", "4"), "project"),
        ("limits.gpus_per_job", ("8", "8", "8"), "org"),
        ("limits.nodes_per_job", ("4", "2", "3"), "team"),
        ("spot.allowed", ("true", "false", "true"), "team"),
        ("spot.needs_checkpoints", ("false", "true", "false"), "team"),
        ("spot.preemptions_per_h_at_most", ("0.3", "0.2", "0.1"), "project"),
        ("spot.jobs_under", ("1d", "12h", "2d"), "team"),
        ("runs.guard", ("required", "required", "required"), "org"),
        ("objective.pick", ("safest", "fastest", "cheapest"), "project"),
        ("objective.value_of_time_usd_per_h", ("1", "9", "5"), "project"),
    ],
)
def test_which_of_three_wins(tmp_path, key, values, winner):
    section, _, name = key.partition(".")
    layers = ("org", "team", "project")
    bodies = {layer: f"{section}: {{{name}: {value}}}" for layer, value in zip(layers, values, strict=True)}
    policy = policy_of(tmp_path, **bodies)
    (rule,) = policy.rules
    assert (rule.text, Path(rule.origin.file).stem) == (f"{key}: {values[layers.index(winner)]}", winner)
    assert [Path(loser.origin.file).stem for loser, _ in policy.overruled] == [
        layer for layer in layers if layer != winner
    ]
    assert {id(by) for _, by in policy.overruled} == {id(rule)}


def test_the_preference_nearest_to_the_project_wins_as_a_whole(tmp_path):
    policy = policy_of(
        tmp_path, org="prefer: {tier: cluster, if: {wait_p90_under: 6h}}", project="prefer: {tier: local}"
    )
    assert texts(policy) == ["prefer: local"]
    assert policy.prefer is not None
    assert policy.prefer.setting.if_.wait_p90_under is None


def test_keys_of_an_objective_are_taken_one_by_one(tmp_path):
    policy = policy_of(
        tmp_path,
        org="objective: {pick: safest, value_of_time_usd_per_h: 5}",
        team="objective: {pick: fastest}",
    )
    assert (policy.pick, policy.value_of_time_usd_per_h) == ("fastest", 5.0)


def test_a_monthly_limit_of_a_project_stands_beside_that_of_all(tmp_path):
    limits = {"org": 9000, "team": 5000, "project": 7000}
    policy = policy_of(tmp_path, **{name: f"limits: {{usd_per_month: {n}}}" for name, n in limits.items()})
    assert texts(policy) == ["limits.usd_per_month: 5000", "limits.usd_per_month: 7000"]


def test_the_order_of_the_files_does_not_matter(tmp_path):
    paths = write(
        tmp_path,
        org="limits: {usd_per_job: 5}\nobjective: {pick: safest}",
        team="limits: {usd_per_job: 4}",
        project="deny: {regions: [us-*]}\nobjective: {pick: fastest}",
    )
    policies = [read_policies(order) for order in permutations(paths)]
    assert all(texts(policy) == texts(policies[0]) for policy in policies)
    assert texts(policies[0]) == ["limits.usd_per_job: 4", "deny.regions: us-*", "objective.pick: fastest"]


@pytest.mark.parametrize(
    ("lock", "body", "key"),
    [
        ("limits.usd_per_job", "limits: {usd_per_job: 1}", "limits.usd_per_job"),
        ("limits", "limits: {gpus_per_job: 1}", "limits.gpus_per_job"),
        ("deny.regions", "deny: {regions: [a, b]}", "deny.regions"),
        ("allow", "allow: {providers: [aws]}", "allow.providers"),
        ("spot", "spot: {allowed: false}", "spot.allowed"),
        ("prefer", "prefer: {tier: local}", "prefer"),
        ("approval", "approval: [{over_usd_per_job: 1, by: me}]", "approval"),
        ("objective.pick", "objective: {pick: safest}", "objective.pick"),
    ],
)
@pytest.mark.parametrize("lower", ["team", "project"])
def test_what_is_locked_cannot_be_set_below(tmp_path, lock, body, key, lower):
    fault = fault_of(
        tmp_path,
        org=f"lock:\n- prefer\n- {lock}" if lock != "prefer" else "lock:\n\n- prefer",
        **{lower: body},
    )
    assert fault == (
        f"{tmp_path / lower}.yaml:4: {key} is locked by the organisation ({tmp_path / 'org'}.yaml:6), so a"
        f" {lower} cannot set it: remove it here, or have the lock lifted there"
    )


def test_a_lock_leaves_other_keys_and_the_locking_layer_alone(tmp_path):
    policy = policy_of(
        tmp_path,
        org="limits: {usd_per_job: 5}\nlock: [limits.usd_per_job]",
        org_2="limits: {usd_per_job: 4}",
        team="limits: {usd_per_hour: 3}\nlock: [deny]",
    )
    assert texts(policy) == ["limits.usd_per_job: 4", "limits.usd_per_hour: 3"]


def test_a_team_locks_the_project_and_not_the_organisation(tmp_path):
    assert policy_of(tmp_path, org="spot: {allowed: false}", team="lock: [spot]").rules
    fault = fault_of(tmp_path, team="lock: [spot]", project="spot: {allowed: false}")
    assert "spot.allowed is locked by the team" in fault


@pytest.mark.parametrize("key", LOCKABLE)
def test_every_key_can_be_locked(tmp_path, key):
    assert policy_of(tmp_path, org=f"lock: [{key}]").sources[0].content.lock == (key,)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("prefer: {tier: local}", "prefer: {tier: cloud}", "prefer: cloud contradicts prefer: local"),
        (
            "prefer: {tier: cluster, if: {wait_p90_under: 6h}}",
            "prefer: {tier: cluster}",
            "prefer: cluster contradicts prefer: cluster if wait_p90_under 6h",
        ),
        ("objective: {pick: safest}", "objective: {pick: fastest}", "objective.pick: fastest contradicts"),
    ],
)
def test_two_files_of_one_layer_must_not_want_different_things(tmp_path, first, second, words):
    fault = fault_of(tmp_path, team=first, team_2=second)
    assert words in fault
    assert fault.startswith(f"{tmp_path / 'team_2'}.yaml:4: ")
    assert f"({tmp_path / 'team'}.yaml:4)" in fault
    assert policy_of(tmp_path, team=first, team_2=first).rules
    assert policy_of(tmp_path, team=first, project=second).rules


@pytest.mark.parametrize(
    ("key", "upper", "lower"),
    [
        ("regions", "[eu-*]", "[us-*, ap-*]"),
        ("providers", "[aws]", "[gcp]"),
        ("markets", "[on-demand]", "[spot, commit-*]"),
        ("gpus", "[A100]", "[H100, L4]"),
        ("instance_types", "['p4d.*']", "['p5.*']"),
    ],
)
def test_allow_lists_must_have_something_in_common(tmp_path, key, upper, lower):
    fault = fault_of(tmp_path, org=f"allow: {{{key}: {upper}}}", team=f"allow: {{{key}: {lower}}}")
    assert fault.startswith(f"{tmp_path / 'team'}.yaml:4: allow.{key}: ")
    assert f"({tmp_path / 'org'}.yaml:4) have nothing in common" in fault


@pytest.mark.parametrize(
    ("key", "upper", "lower"),
    [
        ("regions", "[eu-*]", "['*-west-1']"),
        ("gpus", "[A100]", "[A100-SXM-40GB]"),
        ("gpus", "['A100*']", "['*-80GB']"),
        ("providers", "[AWS]", "[aws]"),
    ],
)
def test_allow_lists_that_overlap_are_fine(tmp_path, key, upper, lower):
    assert (
        len(policy_of(tmp_path, org=f"allow: {{{key}: {upper}}}", team=f"allow: {{{key}: {lower}}}").rules)
        == 2
    )


def test_every_contradiction_is_told_beside_the_faults_of_files(tmp_path):
    faults = check_policies(
        write(
            tmp_path,
            org="lock: [spot]\nallow: {regions: [eu-*]}",
            team="spot: {allowed: true}\nallow: {regions: [us-*]}\nprefer: {tier: local}",
            team_2="prefer: {tier: cloud}",
            project="limits: {x: 1}",
        )
    ).faults
    assert [Path(fault.file).stem for fault in faults] == ["project", "team", "team_2", "team"]
