"""A table of snippets as people write them, and what is said of each."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from advisor.core.errors import PolicyError
from advisor.core.gpus import load_gpus
from advisor.site_files.policy_files import ADVICE, MOST_FAULTS, check_policies, read_policies
from recommender.policy.model import (
    LOCKABLE,
    SECTIONS,
    PolicyFile,
    checked_glob,
    gpu_members,
    json_schema,
    matches,
    may_overlap,
)
from tests.unit.recommender.policy.files import HEADS, write

# Project-layer bodies from line 4 on: all rules there are in force, as text.
GOOD = {
    "nothing": ("", []),
    "a glob": ("deny: {regions: [us-gov-*]}", ["deny.regions: us-gov-*"]),
    "an allow list is one rule": ("allow:\n  regions: [eu-*, us-east-1]", ["allow.regions: eu-*, us-east-1"]),
    "each denied name is one": (
        "deny: {providers: [gcp, azure]}",
        ["deny.providers: gcp", "deny.providers: azure"],
    ),
    "a market by glob": ("deny: {markets: [commit-*]}", ["deny.markets: commit-*"]),
    "a family": ("allow: {gpus: [A100]}", ["allow.gpus: A100"]),
    "a vendor's name": ("allow: {gpus: [NVIDIA A100-SXM4-80GB]}", ["allow.gpus: NVIDIA A100-SXM4-80GB"]),
    "whole and broken amounts": (
        "limits: {usd_per_hour: 40, usd_per_job: 0.5}",
        ["limits.usd_per_hour: 40", "limits.usd_per_job: 0.5"],
    ),
    "a million is not 1e+06": ("limits: {usd_per_month: 1_000_000}", ["limits.usd_per_month: 1000000"]),
    "nothing may be spent": ("limits: {usd_per_month: 0}", ["limits.usd_per_month: 0"]),
    "spot": (
        "spot: {allowed: yes, needs_checkpoints: true, preemptions_per_h_at_most: 0.5, jobs_under: 36h}",
        ["spot.allowed: true", "spot.needs_checkpoints: true", "spot.preemptions_per_h_at_most: 0.5",
         "spot.jobs_under: 1d12h"],
    ),
    "a preference": ("prefer: {tier: local}", ["prefer: local"]),
    "a condition": (
        "prefer: {tier: cluster, if: {wait_p90_under: 1d6h, wait_p50_under: 30m}}",
        ["prefer: cluster if wait_p50_under 30m and wait_p90_under 1d6h"],
    ),
    "approvals": (
        "approval:\n- {over_usd_per_job: 500, by: team lead}\n- {over_usd_per_job: 5000, by: CFO}",
        ["approval: by team lead over 500 USD a job", "approval: by CFO over 5000 USD a job"],
    ),
    "an objective": (
        "currency: USD\nobjective: {pick: safest, value_of_time_usd_per_h: 5}",
        ["objective.pick: safest", "objective.value_of_time_usd_per_h: 5"],
    ),
    "a guard": ("runs: {guard: required}", ["runs.guard: required"]),
}  # fmt: skip

# Bodies from line 4 on, the line of the fault, and words that the message must have.
BAD = {
    "unknown key": ("limit: {}", 4, ["unknown key 'limit'", "Did you mean 'limits'?"]),
    "key in the wrong place": ("usd_per_job: 3", 4, ["Did you mean 'limits.usd_per_job'?"]),
    "unknown key below": ("deny:\n  regons: [a]", 5, ["'deny.regons'", "Did you mean 'regions'?"]),
    "nothing near": ("spot:\n  zzz: 1", 5, ["There are allowed, needs_checkpoints"]),
    "unknown condition": (
        "prefer:\n  tier: cluster\n  if: {wait_p99_under: 6h}", 6, ["Did you mean 'wait_p90_under'"]
    ),
    "unknown unit": ("prefer:\n  tier: cluster\n  if:\n    wait_p90_under: 6 hours", 7, ["'6 hours'", "12h"]),
    "no unit": ("prefer: {tier: cluster, if: {wait_p90_under: 6}}", 4, ["has no unit", "12h"]),
    "an hour worth nothing": ("objective: {value_of_time_usd_per_h: 0}", 4, ["greater than 0"]),
    "a wait of nothing": ("prefer: {tier: cluster, if: {wait_p90_under: 0s}}", 4, ["greater than 0"]),
    "unknown tier": ("prefer: {tier: cluser}", 4, ["local, cluster, cloud", "Did you mean 'cluster'?"]),
    "a condition without tier": ("prefer:\n  if: {wait_p90_under: 6h}", 4, ["'prefer.tier' is missing"]),
    "a number as text": ("limits:\n  usd_per_job: 20 USD", 5, ["limits.usd_per_job: ", "write 20;"]),
    "a sign": ("limits: {usd_per_job: $20.50}", 4, ["write 20.50;"]),
    "quotes": ("limits: {usd_per_job: '20'}", 4, ["write 20;"]),
    "another currency": ("limits: {usd_per_job: 20 EUR}", 4, ["convert other currencies", "'20 EUR'"]),
    "another currency for all": ("currency: EUR", 4, ["currency", "convert them and write currency: USD"]),
    "less than nothing": ("limits: {usd_per_job: -1}", 4, ["greater than or equal to 0"]),
    "without end": ("limits: {usd_per_job: .inf}", 4, ["finite"]),
    "a rate without end": ("spot: {preemptions_per_h_at_most: .inf}", 4, ["finite"]),
    "a rate below nothing": ("spot: {preemptions_per_h_at_most: -0.1}", 4, ["greater than or equal to 0"]),
    "a length without unit": ("spot: {jobs_under: 24}", 4, ["has no unit", "12h"]),
    "not a number": ("limits: {usd_per_job: .nan}", 4, ["limits.usd_per_job"]),
    "beyond a float": (f"limits: {{usd_per_job: 1{'0' * 400}}}", 4, ["limits.usd_per_job"]),
    "true is no amount": ("limits: {usd_per_job: true}", 4, ["write a number"]),
    "a count as text": ("limits: {gpus_per_job: '8'}", 4, ["limits.gpus_per_job", "without quotes"]),
    "half a GPU": ("limits: {gpus_per_job: 1.5}", 4, ["limits.gpus_per_job"]),
    "no GPU at all": ("limits: {gpus_per_job: 0}", 4, ["greater than or equal to 1"]),
    "unknown GPU": ("allow:\n  gpus: [T4, A1000]", 5, ["allow.gpus.2", "no GPU is called 'A1000'", "'A100'"]),
    "a glob of no GPU": ("deny: {gpus: [B9*]}", 4, ["no GPU of the catalog matches"]),
    "unknown market": ("deny: {markets: [sport]}", 4, ["Did you mean 'spot'?", "on-demand"]),
    "a list as text": ("deny: {regions: us-*}", 4, ["a list, such as [a, b]"]),
    "two names in one": ("deny: {regions: ['us-*, eu-*']}", 4, ["one name an entry"]),
    "braces": ("deny: {regions: ['{us,eu}-*']}", 4, ["one name an entry", "* and ?"]),
    "brackets": ("deny: {regions: ['us-[ew]*']}", 4, ["one name an entry"]),
    "not": ("deny: {regions: ['!us-*']}", 4, ["one name an entry"]),
    "a blank name": ("deny: {regions: [' ']}", 4, ["one name an entry"]),
    "a number as a name": ("deny: {regions: [1]}", 4, ["deny.regions.1", "valid string"]),
    "an empty list": ("allow: {regions: []}", 4, ["an empty list"]),
    "an empty key": ("allow:\n  regions:", 5, ["allow.regions is empty"]),
    "an empty section": ("limits:", 4, ["limits is empty"]),
    "text for a section": ("limits: none", 4, ["limits: keys of its own", "'none'"]),
    "one approval, no list": ("approval: {over_usd_per_job: 3, by: me}", 4, ["a list"]),
    "by whom": ("approval:\n- {over_usd_per_job: 3}", 5, ["'approval.1.by' is missing: a role or a person"]),
    "an unknown key without a value": ("zz:", 4, ["unknown key 'zz'"]),
    "an empty entry": ("deny:\n  regions:\n  - us-*\n  -", 7, ["deny.regions.2 is empty"]),
    "a name that paints the terminal": ('deny: {regions: ["\\e[31mred"]}', 4, ["one name an entry"]),
    "a role that rings": ('approval: [{over_usd_per_job: 1, by: "b\\a"}]', 4, ["without control characters"]),
    "yes in quotes": ("spot: {allowed: 'no'}", 4, ["true or false, without quotes"]),
    "unknown pick": ("objective: {pick: best}", 4, ["cheapest, fastest, best-value, safest"]),
    "a guard that is not asked for": ("runs: {guard: no}", 4, ["runs.guard: ", "required"]),
    "a lock of nothing": ("lock: [limit]", 4, ["no such key can be locked", "Did you mean 'limits'?"]),
    "a lock with nobody below": ("lock:\n- limits", 5, ["no layer is below a project"]),
    "a key twice": ("limits: {usd_per_job: 1, usd_per_job: 2}", None, ["stands twice", "line 4"]),
    "an alias": ("allow: &a {regions: [x]}\ndeny: *a", None, ["aliases are not allowed", "line 5"]),
    "a star without quotes": ("deny: {regions: [*-1]}", None, ["begins with * is written in quotes"]),
    "a bomb": (
        "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c,*c]", None, ["aliases are not allowed"]
    ),
    "a deep bomb": ("limits: " + "[" * 5000, None, ["nested too deeply for a policy file"]),
    "an object": ("name: !!python/object/apply:os.system [echo]", None, ["not valid YAML"]),
    "a date that is none": ("name: 2026-13-45", None, ["not valid YAML"]),
    "a tab": ("limits:\n\tusd_per_job: 3", None, ["not valid YAML", "line 5"]),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good_snippets_become_rules(tmp_path, name):
    body, expected = GOOD[name]
    policy = read_policies(write(tmp_path, project=body))
    assert [rule.text for rule in policy.rules] == expected
    assert all(4 <= rule.origin.line <= 6 for rule in policy.rules)


@pytest.mark.parametrize("name", BAD)
def test_bad_snippets_are_refused_with_line_and_advice(tmp_path, name):
    body, line, words = BAD[name]
    (path,) = write(tmp_path, project=body)
    checked = check_policies([path])
    assert checked.policy is None
    (fault,) = checked.faults
    assert (fault.file, fault.line) == (str(path), line)
    for word in words:
        assert word in str(fault)
    assert str(fault).startswith(f"{path}:{line}: " if line else f"{str(path)!r} ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds keys such as"),
        ("- version: 1", "holds keys such as"),
        ("version: 1\nname: x\nlayer: organization", ":3: layer: write one of organisation, team, project"),
        ("version: 1\nname: x", "'layer' is missing: write layer: "),
        ("name: x\nlayer: team", "'version' is missing: write version: 1"),
        ("version: 2\nname: x\nlayer: team", ":1: version: this program reads version 1"),
        ("version: true\nname: x\nlayer: team", ":1: version: this program reads version 1"),
        ("version: 1\nlayer: team", "'name' is missing: whose policy it is"),
        ("version: 1\nname: ''\nlayer: team", ":2: name: "),
        ("version: 1\nname: x\nlayer: team\n3: 4", ":4: a key must be a text, not 3"),
    ],
)
def test_the_head_of_a_file(tmp_path, text, words):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError) as caught:
        read_policies([path])
    assert words in str(caught.value)


def test_all_faults_of_all_files_at_once_in_the_order_of_lines(tmp_path):
    bad, worse = write(tmp_path, org="spot: {x: 1}\nlimits: {usd_per_job: a, y: 2}\n", team="zz:\n")
    with pytest.raises(PolicyError) as caught:
        read_policies([bad, tmp_path / "absent.yaml", worse])
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines[:3]] == [f"{bad}:4", f"{bad}:5", f"{bad}:5"]
    assert "absent.yaml" in lines[3]
    assert lines[4].startswith(f"{worse}:4: unknown key 'zz'. There are version, name, layer, ")
    assert lines[5:] == [ADVICE]


def test_a_key_that_is_misspelt_is_missing_as_well(tmp_path):
    (path,) = write(tmp_path, org="approval:\n- {over_usd: 3, by: me}")
    messages = sorted(str(fault) for fault in check_policies([path]).faults)
    assert messages == [
        f"{path}:5: 'approval.1.over_usd_per_job' is missing: for jobs whose p90 cost is above this",
        f"{path}:5: unknown key 'approval.1.over_usd'. Did you mean 'over_usd_per_job'?",
    ]


def test_a_flood_of_faults_is_cut(tmp_path):
    paths = write(tmp_path, org="".join(f"key{i}: 1\n" for i in range(MOST_FAULTS + 7)))
    with pytest.raises(PolicyError) as caught:
        read_policies(paths)
    lines = str(caught.value).splitlines()
    assert len(lines) == MOST_FAULTS + 2
    assert lines[-2] == "... and 7 more."


def test_what_is_quoted_is_short(tmp_path):
    (path,) = write(tmp_path, org=f"limits: {'x' * 10_000}\n")
    (fault,) = check_policies([path]).faults
    assert len(fault.message) < 200


def test_a_file_given_twice_counts_once(tmp_path):
    (path,) = write(tmp_path, team="limits: {usd_per_job: 5}\nprefer: {tier: local}\n")
    assert len(read_policies([path, path]).rules) == 2


def test_no_file_is_a_policy_without_rules():
    policy = read_policies([])
    assert (policy.rules, policy.pick, policy.value_of_time_usd_per_h, policy.prefer) == (
        (),
        None,
        None,
        None,
    )


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("\ufeff" + HEADS["org"], encoding="utf-8")
    assert read_policies([path]).sources[0].content.name == "org"


@pytest.mark.parametrize(
    ("glob", "name", "expected"),
    [
        ("us-*", "us-east-1", True),
        ("US-*", "us-east-1", True),
        ("us-*", "US-EAST-1", True),
        ("us", "us-east-1", False),
        ("us-east-?", "us-east-1", True),
        ("us-east-?", "us-east-10", False),
        ("*", "anything", True),
        ("p4d.*", "p4d.24xlarge", True),
        ("p4d.*", "p4dx24xlarge", False),
    ],
)
def test_globs(glob, name, expected):
    assert matches(glob, name) is expected


@pytest.mark.parametrize("text", ["us-[ew]*", "{us,eu}", "!us", "a,b", "a;b", "a|b", "", " ", "x" * 101])
def test_what_means_something_elsewhere_is_refused(text):
    with pytest.raises(ValueError, match="one name an entry"):
        checked_glob(text)


@pytest.mark.parametrize(
    ("glob", "members"),
    [
        ("A100-80GB", {"A100-PCIE-80GB", "A100-SXM-80GB"}),
        ("a100-sxm*", {"A100-SXM-40GB", "A100-SXM-80GB"}),
        ("NVIDIA A100-SXM4-80GB", {"A100-SXM-80GB"}),
        ("nvidia-tesla-a100", {"A100-SXM-40GB"}),
        ("A100-80G?", {"A100-PCIE-80GB", "A100-SXM-80GB"}),
        ("l4", {"L4"}),
    ],
)
def test_gpus(glob, members):
    assert set(gpu_members(glob)) == members


def test_a_name_is_no_prefix_and_the_star_is_all():
    assert "L40S" not in gpu_members("L40")
    assert set(gpu_members("*")) == set(load_gpus())


@pytest.mark.parametrize(("glob", "words"), [("A1000", "Did you mean"), ("Z9*", "no GPU of the catalog")])
def test_unknown_gpus(glob, words):
    with pytest.raises(ValueError, match=words):
        gpu_members(glob)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("", "", True),
        ("*", "", True),
        ("?", "", False),
        ("a*", "*b", True),
        ("a*c", "ab", False),
        ("a?c", "abc", True),
        ("A*", "a", True),
        ("*-east-*", "us-*-1", True),
        ("*a", "*b", False),
        ("*" * 50 + "a", "*" * 50 + "b", False),
    ],
)
def test_overlap(left, right, expected):
    assert may_overlap(left, right) is expected
    assert may_overlap(right, left) is expected


ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted((ROOT / "examples" / "policies").glob("*.yaml"))
# The schema knows no GPUs, no markets, no layers below, and YAML's own rules come before it.
BEYOND_THE_SCHEMA = {
    "unknown GPU", "a glob of no GPU", "unknown market", "a lock with nobody below", "a wait of nothing",
    "two names in one", "braces", "brackets", "not", "a blank name", "without end",
    "a rate without end", "not a number",
    "beyond a float", "a name that paints the terminal", "a role that rings",
}  # fmt: skip


def is_valid(document: Any) -> bool:
    return jsonschema.Draft202012Validator(json_schema()).is_valid(document)


def block() -> str:
    """The example of the documentation."""
    return re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "policy.md").read_text(), flags=re.DOTALL)[0]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", GOOD)
def test_the_schema_takes_good_snippets(name):
    assert is_valid(yaml.safe_load(HEADS["project"] + GOOD[name][0]))


@pytest.mark.parametrize(
    "name", [n for n, (_, line, _) in BAD.items() if line and n not in BEYOND_THE_SCHEMA]
)
def test_the_schema_refuses_bad_snippets(name):
    assert not is_valid(yaml.safe_load(HEADS["project"] + BAD[name][0]))


def test_the_schema_describes_every_key():
    schema = json.loads(json.dumps(json_schema()))
    sections = [schema, *schema["$defs"].values()]
    keys = [value for section in sections for value in section.get("properties", {}).values()]
    assert len(keys) > 30
    assert all(key.get("description") for key in keys)
    assert '"title"' not in json.dumps(schema)
    assert '"null"' not in json.dumps(schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid(path):
    assert read_policies([path]).rules
    assert is_valid(yaml.safe_load(path.read_text()))


def test_there_are_three_kinds_of_teams_and_the_bank_has_layers():
    names = {path.stem for path in EXAMPLES}
    assert names == {"startup", "university-lab", "bank", "bank-fraud-team"}
    policy = read_policies([path for path in EXAMPLES if path.stem.startswith("bank")])
    assert (policy.pick, len(policy.sources), len(policy.overruled)) == ("fastest", 2, 2)


def test_the_documented_example_is_valid_and_shows_every_key(tmp_path):
    path = tmp_path / "documented.yaml"
    path.write_text(block())
    assert read_policies([path]).rules
    document = yaml.safe_load(block())
    assert is_valid(document)
    assert set(document) == set(PolicyFile.model_fields)
    for section in ("allow", "limits", "spot", "objective", "runs"):
        assert set(document[section]) == set(SECTIONS[section].model_fields), section
    for name in ("wait_p50_under", "cheapest", "fastest", "safest", "organisation", "project"):
        assert name in (ROOT / "docs" / "policy.md").read_text()


def test_keys_that_can_be_locked():
    assert {"limits", "limits.usd_per_job", "deny.regions", "spot", "prefer", "approval"} <= set(LOCKABLE)
    assert not {"version", "layer", "name", "lock", "prefer.tier"} & set(LOCKABLE)
