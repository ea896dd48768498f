"""Where answers of a sweep are computed: children of this machine, and a real Dask cluster on loopback."""

import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from advisor.cli import sweep as answering
from advisor.core.errors import AdvisorError, InputError, StoreError
from advisor.formats.trace_files import write_trace
from advisor.service import sweep_engines, sweeping
from advisor.service.sweep_engines import Children
from advisor.service.sweeping import Request, SweepJob, key_of, rests_on, versions, world_of
from tests.builders import make_trace
from tests.dask_cluster import kept_in, scheduler, sweep_words, wait_for_workers, worker
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.waiting import WAIT_S, wait_for

pytest.importorskip("distributed")
GRID = "subjects: [t*.json.gz]\noptions: {epochs: [1, 2, 3], gpu: ['L4:1', 'A100:8']}\n"
NUM_JOBS = 6
# In a worker: it answers once, and holds what it gets then until it is killed.
GATE = """
import threading
from advisor.service import sweep_engines

class Gate(sweep_engines.Children):
    def answer(self, request, held=[]):
        if held:
            threading.Event().wait()
        held.append(request)
        return super().answer(request)

def dask_setup(worker):
    sweep_engines._CHILDREN = Gate()
"""


def gated_worker(shell, address):
    return worker(shell, address, "--preload", str(shell.write("gate.py", GATE)))


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    shell = Shell(folder=tmp_path_factory.mktemp("sweep"))
    write_trace(make_trace(), shell.folder / "t.json.gz")
    shell.write("grid.yaml", GRID)
    return shell


@pytest.fixture(scope="module")
def address(shell):
    with scheduler(shell) as (address, _), worker(shell, address):
        wait_for_workers(address, 1)
        yield address


@pytest.fixture(scope="module")
def local(shell):
    """What the sweep on this machine kept, by file."""
    shell.run("sweep", "grid.yaml", "--offline", "--folder", "local")
    return kept_in(shell.folder / "local")


def test_dask_keeps_the_bytes_of_this_machine(shell, address, local):
    assert len(local) == NUM_JOBS + 1
    jobs = shell.run(*sweep_words(address, "dask")).document["jobs"]
    assert all(one["is_new"] and one["advice"]["take"] for one in jobs)
    assert kept_in(shell.folder / "dask") == local


def test_a_worker_with_a_full_disk_that_is_killed_loses_nothing(shell, address, local):
    """It cannot write a byte, takes part, and ends while it has work."""
    with gated_worker(shell, address) as lost:
        wait_for_workers(address, 2)
        resource.prlimit(lost.pid, resource.RLIMIT_FSIZE, (0, 0))
        with shell.start(*sweep_words(address, "killed"), stdout=subprocess.DEVNULL) as client:
            wait_for(lambda: kept_in(shell.folder / "killed"))
            lost.kill()
            assert client.wait(WAIT_S) == 0
    assert kept_in(shell.folder / "killed") == local


def test_a_client_and_a_scheduler_that_are_killed_lose_nothing(shell, address, local):
    kept, errors = shell.folder / "kept", shell.folder / "errors"
    null = subprocess.DEVNULL
    with scheduler(shell) as (other, process), gated_worker(shell, other), errors.open("w") as log:
        wait_for_workers(other, 1)
        with shell.start(*sweep_words(other, "kept"), stdout=null, stderr=null) as client:
            wait_for(lambda: kept_in(kept))
            client.kill()
        with shell.start(*sweep_words(other, "kept"), stdout=null, stderr=log) as client:
            wait_for(lambda: "sweeping" in errors.read_text())
            process.kill()
            assert client.wait(WAIT_S) == 1
    assert "went away. What was computed so far is kept" in errors.read_text()
    assert "Traceback" not in errors.read_text()
    jobs = shell.run(*sweep_words(address, "kept")).document["jobs"]
    assert sum(not one["is_new"] for one in jobs) == 1
    assert kept_in(kept) == local


def test_a_worker_with_other_settings_is_refused_by_name(shell, address):
    with worker(shell, address, ADVISOR_CLOUD__MAX_GPUS="3"):
        wait_for_workers(address, 2)
        answer = shell.run(*sweep_words(address, "settings"))
    assert_plain_error(answer, 1, "the Dask worker tcp://", "settings or policies differ")


class Workers:
    """A client as far as workers' versions go."""

    def __init__(self, **found):
        self.found = found

    def run(self, _function, **_options):
        return self.found


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "has no workers: start some with `dask worker h:1`"),
        ({"w1": versions(), "w2": "advisor 0.0.9"}, "w2 has advisor 0.0.9, and here is advisor"),
        ({"w1": ModuleNotFoundError("advisor")}, "w1 has no advisor that can answer (ModuleNotFoundError)"),
    ],
)
def test_workers_that_would_answer_otherwise_are_refused(found, words):
    with pytest.raises(InputError) as refused:
        sweep_engines._check_workers(Workers(**found), "h:1")
    assert words in str(refused.value)


@pytest.mark.parametrize("engine", ["dusk://h:1", "dask://h", "dask://:8786", "dask://h:x"])
def test_an_engine_that_is_none(shell, engine):
    assert_plain_error(
        shell.run("sweep", "grid.yaml", "--engine", engine), 2, "write local or dask://HOST:PORT"
    )


def test_a_scheduler_that_is_not_there(shell, monkeypatch):
    monkeypatch.setattr(sweep_engines, "_CONNECT_WITHIN_S", 0.1)
    assert_plain_error(
        shell.run(*sweep_words("127.0.0.1:1", "x")), 2, "no Dask scheduler answers at 127.0.0.1:1"
    )


def test_without_dask_the_extra_is_named(shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert_plain_error(shell.run(*sweep_words("127.0.0.1:1", "x")), 2, "pip install 'gpu-advisor[dask]'")


# Children --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["sys.exit(3)", "sys.stdin.read()"], ids=["ends", "hangs"])
def test_a_child_that_does_not_answer_costs_one_answer(line, monkeypatch):
    monkeypatch.setattr(sweep_engines, "_COMMAND", (sys.executable, "-c", f"import sys; {line}"))
    monkeypatch.setattr(sweep_engines, "_WITHIN_S", 0.5)
    advice = Children().answer("{}")["advice"]
    assert advice["error"].startswith("no answer: its process ended with")
    assert not advice["is_final"]


def test_a_child_that_cannot_start_costs_one_answer(monkeypatch):
    monkeypatch.setattr(sweep_engines, "_COMMAND", ("/nowhere/python",))
    advice = Children().answer("{}")["advice"]
    assert advice["error"].startswith("no answer: its process did not start: ")
    assert not advice["is_final"]


def test_a_child_that_another_thread_takes_first_is_started_anew(monkeypatch):
    class Taken(list):
        """As it looks to a thread that comes second."""

        def __bool__(self):
            return True

    monkeypatch.setattr(sweep_engines, "_COMMAND", (sys.executable, "-c", "input(); print('{}')"))
    children = Children(Taken())
    assert children.answer("{}") == {}
    sweep_engines._end(children._idle.pop())


def test_what_fails_on_a_worker_is_named():
    failed = SimpleNamespace(status="error")
    advice = sweep_engines._result(failed, (ImportError, ImportError("no advisor"), None), "h:1")
    assert advice.error == "no answer: a Dask worker failed on this: ImportError: no advisor"
    assert not advice.is_final
    with pytest.raises(AdvisorError, match="h:1 went away"):
        sweep_engines._result(SimpleNamespace(status="cancelled"), None, "h:1")


@pytest.fixture
def request_line(shell, monkeypatch):
    """A request as a child reads it, in the environment of one."""
    before = Path.cwd()
    with monkeypatch.context() as patched:
        for name, value in shell.environ(ADVISOR_PRICES__REFRESH="never").items():
            patched.setenv(name, value)
        world = answering._world(offline=True)
        job = SweepJob(subject="t.json.gz", arguments="", options=("--epochs", "1", "--gpu", "L4:1"))
        patched.chdir(shell.folder)
        key = key_of(job, rests_on(job, world))
        folder = str(shell.folder)
        yield asdict(Request(job=job, key=key, world=world, folder=folder, offline=True))
    os.chdir(before)


def test_a_database_that_is_away_for_a_while_costs_nothing(request_line, monkeypatch):
    waits = []

    def world(*given):
        if len(waits) < 2:
            raise StoreError("no database")
        return world_of(*given)

    monkeypatch.setattr(sweeping, "world_of", world)
    monkeypatch.setattr("time.sleep", waits.append)
    assert answering.answered(json.dumps(request_line))["advice"]["take"]
    assert waits == [*sweeping.WAITS_S[:2]]
    waits.clear()
    monkeypatch.setattr("time.sleep", lambda _: None)
    advice = answering.answered(json.dumps(request_line))["advice"]
    assert (advice["error"], advice["is_final"]) == ("no database", False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"folder": "/nowhere"}, "same files at the same place"),
        ({"key": "0"}, "files of t.json.gz differ there"),
        ({"world": {"versions": "advisor 9", "settings": "", "prices": ""}}, "and here is advisor 9"),
    ],
)
def test_what_would_be_another_answer_is_refused(changes, words, request_line):
    assert words in answering.answered(json.dumps(request_line | changes))["refused"]


def test_prices_that_change_meanwhile_are_no_answer(request_line, monkeypatch):
    worlds = iter([answering._world(offline=True), sweeping.SweepBasis(versions="", settings="", prices="")])
    monkeypatch.setattr(sweeping, "world_of", lambda *_: next(worlds))
    assert answering.answered(json.dumps(request_line))["refused"].endswith("any more")
