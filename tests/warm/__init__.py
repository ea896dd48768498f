"""Children of `advisor.profile` that need not import torch: forks of one process that has it already.

A test module that profiles scripts, and to which the start of a child does not matter, says

    pytestmark = pytest.mark.usefixtures("warm_children")

Then the active virtual environment is one whose interpreter (`client.py`) asks a server (`server.py`) for a
fork wherever it is started as a child of a profile, and is the real interpreter anywhere else. What the fork
runs is `advisor/payload/child.py`, patches and all. How a child really starts is tested in
`tests/unit/profile` and `tests/security`, and wherever a test asks for `cold_children`.
"""

import fcntl
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from advisor.core.devices import detect_devices
from advisor.profile.attempt import CHILD
from advisor.profile.environment import child_environment
from tests import machine

_FOLDER = Path(__file__).parent
PROBES = "tests.unit.profile.probe_server"
# What else is forked, as ``python -m NAME``, and whether it needs what jobs under the fake GPU import.
MODULES = {
    PROBES: True, "tests.unit.measure.grid_on_fake_gpu": True, "tests.unit.profile.measure_on_cpu": False,
    "tests.unit.recipes.four_bits": False, "tests.memory.peaks_by_torch": False,
}  # fmt: skip
# The server waits for many children at once by Linux's means.
_CAN_SERVE = hasattr(os, "pidfd_open")
_SOCKETS = ("any", "fake")


def settings_of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that count when the interpreter starts, and so cannot be another's in a fork."""
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


@pytest.fixture(scope="session")
def warm_folder():
    """The virtual environment, which is one for all processes of tests."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    folder = start_server()
    with _locked(folder):
        for name in _SOCKETS if _CAN_SERVE else ():
            assert (folder / name).exists(), "the server of warm children ended before it listened"
        return folder


@pytest.fixture(scope="module")
def warm_children(warm_folder):
    """All profiles of the module, those of its fixtures included, run in forks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONDA_PREFIX", raising=False)
        patch.setenv("VIRTUAL_ENV", str(warm_folder))
        yield


@pytest.fixture(scope="session")
def warm_module(warm_folder):
    """What one of MODULES prints, which must succeed."""

    def run(name: str, *arguments: object) -> str:
        python = warm_folder / "bin" / "python"
        done = subprocess.run(
            [python, "-m", name, *map(str, arguments)], cwd=_FOLDER.parents[1],
            env=child_environment(os.environ, warm_folder), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def cold_children(monkeypatch):
    """One test whose children really start."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


def start_server() -> Path:
    """Its folder: the first process of tests that asks makes it, and need not wait for the server."""
    folder = Path(machine.folder()) / "warm"
    with _locked(folder) as lock:
        if not folder.exists():
            _make_environment(folder, lock)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Alone, and with a server that listens: until then it holds the lock of who started it."""
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _make_environment(folder: Path, lock: int) -> None:
    """A folder that looks like a virtual environment; its server runs as long as whoever keeps the folder."""
    sockets = tuple(str(folder / name) for name in _SOCKETS)
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    client = (_FOLDER / "client.py").read_text()
    environment = child_environment(os.environ, folder)
    # Where there is no server, the client finds other settings than none, and starts the real interpreter.
    settings = settings_of_python(environment) if _CAN_SERVE else None
    fake = ("fake",) if detect_devices() else ("fake", "auto")
    known = (sys.executable, sockets, str(CHILD), MODULES, settings, fake)
    names = "REAL, SOCKETS, CHILD, MODULES, SETTINGS, FAKE"
    python.write_text(f"#!{sys.executable} -IS\n{names} = {known}\n{client}")
    python.chmod(0o755)
    if _CAN_SERVE:
        # No object of Popen: it would warn at the end that the server still runs, as it shall.
        command = [sys.executable, str(_FOLDER / "server.py"), str(CHILD), machine.keeper(), *sockets]
        files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, lock, 1)]
        os.posix_spawn(sys.executable, command, environment, file_actions=files, setsid=True)
