"""Runs all probes once for the whole session."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.profile.probes import all_groups


@pytest.fixture(scope="session")
def probe_results(tmp_path_factory):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    folder = tmp_path_factory.mktemp("probes")
    (folder / "groups.json").write_text(json.dumps(all_groups()))
    server = Path(__file__).with_name("probe_server.py")
    command = [sys.executable, server, folder / "groups.json", folder / "results.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          env=os.environ | {"TMPDIR": str(folder)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


@pytest.fixture
def probe(probe_results):
    """The result of a probe that must succeed."""

    def get(name):
        assert "error" not in probe_results[name], probe_results[name]["error"]
        return probe_results[name]["result"]

    return get
