"""Children of `advisor.profile` that need not import torch: forks of one process that has it already.

A test module that profiles scripts, and to which the start of a child does not matter, says

    pytestmark = pytest.mark.usefixtures("warm_children")

Then the active virtual environment is one whose interpreter (`client.py`) asks a server (`server.py`) for a
fork wherever it is started as a child of a profile, and is the real interpreter anywhere else. What the fork
runs is `advisor/payload/child.py`, patches and all. How a child really starts is tested in
`tests/unit/profile` and `tests/security`, and wherever a test asks for `cold_children`.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from advisor.core.devices import detect_devices
from advisor.profile.attempt import CHILD
from advisor.profile.environment import child_environment
from tests import machine

_FOLDER = Path(__file__).parent
_LAST_WORDS_S = 10.0
# The server waits for many children at once by Linux's means.
_CAN_SERVE = hasattr(os, "pidfd_open")


def settings_of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that count when the interpreter starts, and so cannot be another's in a fork."""
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


@pytest.fixture(scope="session")
def warm_folder():
    """The virtual environment, for the rest of the session."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    with warm_environment() as folder:
        yield folder


@pytest.fixture(scope="module")
def warm_children(warm_folder):
    """All profiles of the module, those of its fixtures included, run in forks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONDA_PREFIX", raising=False)
        patch.setenv("VIRTUAL_ENV", str(warm_folder))
        yield


@pytest.fixture
def cold_children(monkeypatch):
    """One test whose children really start."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


@contextmanager
def warm_environment() -> Iterator[Path]:
    """A folder that looks like a virtual environment, while its server runs."""
    # Not pytest's folder: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="warm-", dir=machine.folder()) as name:
        folder = Path(name)
        sockets = str(folder / "any"), str(folder / "fake")
        python = folder / "bin" / "python"
        python.parent.mkdir()
        client = (_FOLDER / "client.py").read_text()
        environment = child_environment(os.environ, folder)
        settings = settings_of_python(environment) if _CAN_SERVE else None
        fake = ("fake",) if detect_devices() else ("fake", "auto")
        known = (
            f"REAL, SOCKETS, CHILD, SETTINGS, FAKE = {(sys.executable, sockets, str(CHILD), settings, fake)}"
        )
        python.write_text(f"#!{sys.executable} -IS\n{known}\n{client}")
        python.chmod(0o755)
        if not _CAN_SERVE:
            # The client finds other settings than none, and starts the real interpreter.
            yield folder
            return
        server = subprocess.Popen(
            [sys.executable, _FOLDER / "server.py", CHILD, *sockets],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
        with server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == server.stdout.readline() == b"ready\n"
                yield folder
            finally:
                server.terminate()
                with suppress(subprocess.TimeoutExpired):
                    server.wait(timeout=_LAST_WORDS_S)
                server.kill()
