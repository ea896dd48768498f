"""What we write for other schedulers, against the schemas that they publish.

check-jsonschema brings the schema of GitHub's workflows, kubernetes-validate those of each Kubernetes.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from advisor.schedule.exports import cron_jobs, workflow
from tests.schedules import make_schedule
from tests.test_docs import ROOT
from tests.unit.schedule.test_github_actions import PLAN as WORKFLOW_PLAN
from tests.unit.schedule.test_kubernetes import IMAGE, LIMITS

ODD = ("report", "--since", "7d", "--project", "a b'c\"$(id)%${{ x }}")
OURS = sorted(
    [*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "examples" / "github").glob("*.yml")]
)


def refused(program: str, *arguments: str | Path) -> str:
    """What a checker of the test environment says against a file; empty where it takes it."""
    command = [Path(sys.executable).with_name(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def refused_by_github(path: Path) -> str:
    return refused("check-jsonschema", "--builtin-schema", "vendor.github-workflows", path)


def refused_by_kubernetes(path: Path) -> str:
    return refused("kubernetes-validate", "--strict", path)


@pytest.mark.parametrize("command", [("report", "--since", "7d"), ODD])
def test_github_takes_a_workflow(command, tmp_path):
    path = tmp_path / "weekly.yml"
    path.write_text(workflow(make_schedule(command=command), WORKFLOW_PLAN).text)
    assert refused_by_github(path) == ""
    path.write_text(path.read_text().replace("runs-on:", "run-on:"))
    assert "run-on" in refused_by_github(path)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_github_takes_the_workflows_that_lie_here(path):
    assert refused_by_github(path) == ""


@pytest.mark.parametrize("command", [("report", "--since", "7d"), ODD])
def test_kubernetes_takes_a_cron_job(command, tmp_path):
    path = tmp_path / "weekly.yaml"
    (file,) = cron_jobs([make_schedule(command=command)], image=IMAGE, **LIMITS)
    path.write_text(file.text)
    assert refused_by_kubernetes(path) == ""
    path.write_text(path.read_text().replace("concurrencyPolicy:", "concurrency:"))
    assert "concurrency" in refused_by_kubernetes(path)
