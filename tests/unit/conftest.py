"""Pieces of code under the fake GPU, whose answers tests of several rooms judge."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.profile.environment import child_environment
from tests.unit.profile.probes import shards

ROOT = Path(__file__).parents[2]


class Probes:
    """Replies by the probe's name. The first that is asked for has its whole shard run, in one process."""

    def __init__(self, folder, server):
        self._folder = folder
        self._server = server
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
            self._replies[shard] = self._run(shard)
        return self._replies[shard][name]

    def _run(self, shard):
        asked, answered = (self._folder / f"{shard}-{part}.json" for part in ("groups", "results"))
        asked.write_text(json.dumps(self._shards[shard]))
        self._server.stdin.write(f"{asked}\t{answered}\n")
        self._server.stdin.flush()
        assert self._server.stdout.readline() == "done\n", (self._folder / "said.txt").read_text()
        return json.loads(answered.read_text())


@pytest.fixture(scope="session")
def probe_results(tmp_path_factory):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    folder = tmp_path_factory.mktemp("probes")
    command = [sys.executable, "-m", "tests.unit.profile.probe_server"]
    # As a child of ours has it: nothing asks the network. And what would be compiled fails at once.
    # A file and no pipe, which a probe's own children could keep open for ever.
    with (folder / "said.txt").open("wb") as said:
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, cwd=ROOT,
            env=child_environment(os.environ, folder) | {"CXX": "false"},
        )  # fmt: skip
    with server:
        try:
            yield Probes(folder, server)
        finally:
            server.kill()


@pytest.fixture
def probe(probe_results):
    """The result of a probe that must succeed."""

    def get(name):
        reply = probe_results[name]
        assert "error" not in reply, reply["error"]
        return reply["result"]

    return get
