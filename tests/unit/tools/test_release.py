"""What a release is made of: its workflow, the packages it trusts and the settings of its wheels."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.test_docs import ROOT

GITHUB = ROOT / ".github"
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
LOG = """# Changelog

What changes for users.

## Unreleased

- coming

## 0.2.0 (2026-12-01)

Reports.

### More

- one

## 0.1.0 (2026-10-01)

- the first
"""


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text())


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


# --- Rights ----------------------------------------------------------------------------------------


def test_each_job_has_the_least_rights_and_a_time_limit(workflow):
    assert workflow["permissions"] == {}
    read = {"contents": "read"}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "wheels": read,
        "source": read,
        "publish": {"id-token": "write"},
        "announce": {"contents": "write"},
    }
    assert all(job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())


def test_only_a_tag_is_published_and_only_when_all_is_built(workflow):
    jobs = workflow["jobs"]
    for name in ("publish", "announce"):
        assert jobs[name]["if"].startswith("startsWith(github.ref, 'refs/tags/v')")
    assert set(jobs["publish"]["needs"]) == {"wheels", "source"}
    assert jobs["announce"]["needs"] == ["publish"]


def test_the_job_that_pypi_trusts_runs_no_code_of_the_checkout(workflow):
    assert not any(
        "run" in step or "checkout" in step["uses"] for step in workflow["jobs"]["publish"]["steps"]
    )


def test_no_secret_is_kept(workflow):
    assert "secrets." not in yaml.safe_dump(workflow)
    checkouts = [step["with"] for step in steps(workflow) if "checkout" in step.get("uses", "")]
    assert checkouts
    assert all(given == {"persist-credentials": False} for given in checkouts)


def test_no_name_of_a_branch_or_tag_becomes_code_of_a_shell(workflow):
    assert not any("${{" in step.get("run", "") for step in steps(workflow))


# --- What is trusted -------------------------------------------------------------------------------


def test_actions_are_pinned_by_commit():
    files = [*(GITHUB / "workflows").glob("*.yml")]
    lines = [line.strip(" -") for file in files for line in file.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not PINNED.search(line)] == []


def test_packages_are_installed_by_hash_alone(workflow):
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    installs = [text for text in (*commands, settings["before-build"]) if "pip install" in text]
    assert len(installs) == 3
    assert all(text.count("pip install") == text.count("--require-hashes") for text in installs)
    assert "pipx" not in "".join(commands)
    assert "--no-isolation" in settings["build-frontend"]["args"]


@pytest.mark.parametrize("name", ["build", "release"])
def test_each_package_of_a_lock_has_hashes_and_each_that_is_asked_for_is_there(name):
    folder = GITHUB / "requirements"
    entries = re.split(r"^(?=\w)", (folder / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    asked = [line for line in (folder / f"{name}.in").read_text().split("\n") if line and line[0] != "#"]
    assert set(asked) <= {entry.split("==")[0] for entry in entries}


def test_the_lock_of_a_build_has_all_that_the_build_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {re.split("[<>=]", text)[0] for text in project["build-system"]["requires"]}
    assert needed <= set((GITHUB / "requirements" / "build.in").read_text().split())


def test_dependabot_keeps_both_up_to_date():
    settings = yaml.safe_load((GITHUB / "dependabot.yml").read_text())
    assert {update["package-ecosystem"] for update in settings["updates"]} == {"github-actions", "pip"}


# --- Notes and wheels ------------------------------------------------------------------------------


def notes(workflow: dict[str, Any], folder, tag: str) -> subprocess.CompletedProcess[str]:
    """The step that cuts the notes, as the workflow runs it."""
    (step,) = [step for step in steps(workflow) if step.get("name") == "notes"]
    (folder / "CHANGELOG.md").write_text(LOG)
    command = ["bash", "-e", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=os.environ | {"TAG": tag}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("tag", "text"), [("v0.2.0", "Reports.\n\n### More\n\n- one"), ("v0.1.0", "- the first")]
)
def test_notes_are_the_part_of_the_version(workflow, tmp_path, tag, text):
    assert notes(workflow, tmp_path, tag).returncode == 0
    assert (tmp_path / "notes.md").read_text().strip() == text


@pytest.mark.parametrize("tag", ["v0.2", "v0.2.0.1", "v", "v0x2x0"])
def test_a_version_that_is_not_there_stops_the_release(workflow, tmp_path, tag):
    done = notes(workflow, tmp_path, tag)
    assert (done.returncode, "has no version" in done.stderr) == (1, True)


def test_the_release_attaches_a_list_of_its_parts(workflow):
    """The announcement takes all artifacts, of which one is the CycloneDX file of `make sbom`."""
    uploads = {
        step["with"]["name"]: step["with"]["path"]
        for step in steps(workflow)
        if "upload" in step.get("uses", "")
    }
    assert uploads["sbom"] == "build/gpu-advisor.cdx.json"
    assert uploads["sbom"] in (ROOT / "Makefile").read_text()
    (download,) = [
        step["with"] for step in workflow["jobs"]["announce"]["steps"] if "download" in step.get("uses", "")
    ]
    assert "pattern" not in download


def test_wheels_are_built_for_what_the_package_says_it_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    least = project["project"]["requires-python"].removeprefix(">=").replace(".", "")
    stable = project["tool"]["scikit-build"]["wheel"]["py-api"]
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp{least}-*", f"{stable}-*"]
