"""The published JSON Schema says what the reader takes, and the examples and the documentation are valid."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from advisor.site_files.policy_files import read_policies
from recommender.policy.model import LOCKABLE, SECTIONS, PolicyFile, json_schema
from tests.unit.recommender.policy.files import HEADS
from tests.unit.recommender.policy.test_snippets import BAD, GOOD

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
