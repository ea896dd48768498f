"""What a release is made of: its notes, its workflow and the settings of its wheels."""

import tomllib

import pytest
import yaml

from tests.test_docs import ROOT
from tools.release_notes import CHANGELOG, main, notes_of

LOG = """# Changelog

What changes for users.

## Unreleased

- coming

## 0.2.0 (2026-12-01)

Reports.

### More

- one

## [0.1.0] - 2026-10-01

- the first
"""


@pytest.mark.parametrize(
    ("tag", "notes"),
    [("v0.2.0", "Reports.\n\n### More\n\n- one\n"), ("0.1.0", "- the first\n"), ("Unreleased", "- coming\n")],
)
def test_notes_are_the_part_of_the_version(tag, notes):
    assert notes_of(LOG, tag) == notes


@pytest.mark.parametrize("tag", ["v0.2", "v0.2.0.1", "", "v"])
def test_a_version_that_is_not_there_is_named(tag):
    with pytest.raises(ValueError, match=r"it has Unreleased, 0\.2\.0"):
        notes_of(LOG, tag)


def test_our_own_changelog_can_be_cut(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["release_notes.py", "Unreleased"])
    assert main() == 0
    assert capsys.readouterr().out.strip() in CHANGELOG.read_text()


def test_without_a_tag_nothing_is_printed(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["release_notes.py"])
    assert main() == 1
    assert capsys.readouterr().out == ""


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())


def test_only_the_job_that_publishes_may_write(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert {name for name, right in rights.items() if right} == {"publish"}
    assert workflow["jobs"]["publish"]["if"].startswith("startsWith(github.ref, 'refs/tags/v')")
    assert set(workflow["jobs"]["publish"]["needs"]) == set(workflow["jobs"]) - {"publish"}


def test_no_secret_is_kept_for_publishing(workflow):
    assert "secrets." not in yaml.safe_dump(workflow)
    checkouts = [
        step["with"] for job in workflow["jobs"].values() for step in job["steps"]
        if "checkout" in step.get("uses", "")
    ]  # fmt: skip
    assert checkouts
    assert all(given == {"persist-credentials": False} for given in checkouts)


def test_wheels_are_built_for_what_the_package_says_it_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    least = project["project"]["requires-python"].removeprefix(">=").replace(".", "")
    stable = project["tool"]["scikit-build"]["wheel"]["py-api"]
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp{least}-*", f"{stable}-*"]
