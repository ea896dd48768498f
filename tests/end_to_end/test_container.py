"""The container recipe: what it says of itself, and its processes over a PostgreSQL, without Docker."""

import http.client
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from advisor.formats.trace_files import write_trace
from advisor.service.schedule.running import GRACE_S
from tests.builders import make_trace
from tests.dask_cluster import program, scheduler, sweep_words, wait_for_workers
from tests.end_to_end.cli import Shell
from tests.machine import needs
from tests.serving import TOKEN

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "container"
RECIPE = (FOLDER / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICE = COMPOSE["services"]["advisor"]


def test_the_recipe_is_slim_runs_as_nobody_special_and_looks_after_its_health():
    last = RECIPE.rpartition("\nFROM ")[2]
    assert last.startswith("python:3.12-slim\n")
    assert "apt-get" not in last
    assert re.findall(r"^USER (\w+)$", last, flags=re.MULTILINE) == ["advisor"]
    assert "HEALTHCHECK" in last
    assert json.loads(last.rpartition("CMD ")[2]) == SERVICE["command"]
    # What is copied is what an installation needs.
    kept = re.findall(r"^!(\S+)$", (FOLDER / "Dockerfile.dockerignore").read_text(), flags=re.MULTILINE)
    assert all((FOLDER.parents[1] / name).exists() for name in kept)


def test_secrets_come_from_the_environment_alone():
    for service in COMPOSE["services"].values():
        secrets = {k: v for k, v in service["environment"].items() if re.search("PASSWORD|TOKEN", k)}
        assert secrets
        assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets.values())
        assert not re.search(r"://\w+:", service["environment"].get("ADVISOR_STORE__URL", ""))
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    # Its port runs what it is sent.
    assert "ports" not in COMPOSE["services"]["scheduler"]


def test_a_command_of_a_schedule_may_end_before_the_container_does():
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) > GRACE_S + 10


@needs("postgresql")
def test_its_processes_serve_and_schedule_over_one_postgresql(tmp_path, postgres_url):
    """The command of the compose file, on a free port."""
    environ = {"ADVISOR_STORE__URL": postgres_url, "SERVE_TOKEN": TOKEN}
    shell = Shell(folder=tmp_path)
    added = shell.run(
        "schedule", "add", "0 2 * * *", "--name", "nightly", "--", "prices", "refresh", **environ
    )
    assert added.code == 0, added.err
    command = [*SERVICE["command"], "--port", "0"]
    with shell.start(*command, environ=environ, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "advisor serves" in line)
            (port,) = re.findall(r"http://0\.0\.0\.0:(\d+)/", line)
            assert answer(port, "/healthz") == (200, "ok")
            assert answer(port, "/api/schedules")[0] == 401
            status, schedules = answer(port, "/api/schedules", {"Authorization": f"Bearer {TOKEN}"})
            assert (status, [one["name"] for one in schedules]) == (200, ["nightly"])
        finally:
            process.terminate()
        assert process.wait(60) == 0


@needs("postgresql")
def test_its_workers_compute_a_sweep_whose_answers_lie_in_postgresql(tmp_path, postgres_url):
    """The entry points of the compose file, on free ports."""
    services = COMPOSE["services"]
    shell = Shell(folder=tmp_path)
    write_trace(make_trace(), shell.folder / "trace.json.gz")
    shell.write("grid.yaml", "subjects: [trace.json.gz]\noptions: {epochs: [1, 2], gpu: ['L4:1']}\n")
    _, _, *of_scheduler = services["scheduler"]["entrypoint"]
    _, _, at, *of_worker = services["worker"]["entrypoint"]
    environ = {"ADVISOR_STORE__URL": postgres_url}
    with scheduler(shell, *of_scheduler) as (address, _):
        at = at.replace("scheduler:8786", address)
        with program(shell, "dask_worker", at, *of_worker, "--local-directory", "workers", **environ):
            wait_for_workers(address, 1)
            answers = shell.run(*sweep_words(address, "swept"), **environ).document["jobs"]
    assert [bool(one["advice"]["take"]) for one in answers] == [True, True]


def answer(port: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status, and what its last field but warnings says."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("GET", path, headers=headers or {})
    given = connection.getresponse()
    facts = json.loads(given.read())
    connection.close()
    return given.status, facts.get("status", facts.get("schedules"))
