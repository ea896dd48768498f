"""Pieces of code under the fake GPU, whose answers tests of several rooms judge."""

import fcntl
import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from advisor.profile.environment import child_environment
from tests import machine
from tests.unit.profile.probes import shards
from tests.warm import PROBES

ROOT = Path(__file__).parents[2]


class Probes:
    """Replies by the probe's name. The first process of tests that asks for one has its whole shard run."""

    def __init__(self, python, folder, stack):
        self._python = python
        self._folder = folder
        self._stack = stack
        self._server = None
        self._shards = shards()
        self._shard_of = {
            name: shard
            for shard, groups in self._shards.items()
            for group in groups
            for name in group["probes"]
        }
        self._replies = {}

    def __getitem__(self, name):
        shard = self._shard_of[name]
        if shard not in self._replies:
            path = Path(machine.folder()) / f"probes-{shard}.json"
            with Path(f"{path}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not path.exists():
                    self._run(shard, path)
            self._replies[shard] = json.loads(path.read_text())
        return self._replies[shard][name]

    def _run(self, shard, answered):
        self._server = self._server or self._start()
        asked = self._folder / f"{shard}.json"
        asked.write_text(json.dumps(self._shards[shard]))
        self._server.stdin.write(f"{asked}\t{answered}\n")
        self._server.stdin.flush()
        assert self._server.stdout.readline() == "done\n", (self._folder / "said.txt").read_text()

    def _start(self):
        command = [self._python, "-m", PROBES]
        # As a child of ours has it: nothing asks the network. And what would be compiled fails at once.
        # A file and no pipe, which a probe's own children could keep open for ever.
        with (self._folder / "said.txt").open("wb") as said:
            server = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, cwd=ROOT,
                env=child_environment(os.environ, self._folder) | {"CXX": "false"},
            )  # fmt: skip
        self._stack.enter_context(server)
        self._stack.callback(server.kill)
        return server


@pytest.fixture(scope="session")
def probe_results(warm_folder, tmp_path_factory):
    with ExitStack() as stack:
        yield Probes(warm_folder / "bin" / "python", tmp_path_factory.mktemp("probes"), stack)


@pytest.fixture
def probe(probe_results):
    """The result of a probe that must succeed."""

    def get(name):
        reply = probe_results[name]
        assert "error" not in reply, reply["error"]
        return reply["result"]

    return get
