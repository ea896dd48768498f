"""A fork is as good as a child that really starts, and ends with whoever asked for it."""

import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from advisor.core.errors import ProfileError
from advisor.core.values import Trace
from advisor.profile import profile
from tests.compatibility.row import SCRIPTS
from tests.waiting import wait_for_end

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]
LOOK = """
import os, sys
sys.exit(repr((os.getcwd(), sys.argv, sys.stdout.isatty(), os.environ["PL_KEPT"], sorted(sys.modules) > [])))
"""


def profiled(script: str, backend: str) -> Trace:
    trace = profile(SCRIPTS / f"{script}.py", backend=backend)
    return replace(trace, data_loading_s=None, loader_cpu_s_per_sample=None)


@pytest.mark.parametrize(("script", "backend"), [("quickstart", "auto"), ("bf16_autocast", "fake")])
def test_the_trace_is_that_of_a_child_that_really_starts(script, backend, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    warm = profiled(script, backend)
    monkeypatch.delenv("VIRTUAL_ENV")
    assert warm == profiled(script, backend)


def test_a_script_sees_the_same_process(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PL_KEPT", "yes")
    (tmp_path / "look.py").write_text(LOOK)
    messages = []
    for _ in range(2):
        with pytest.raises(ProfileError) as failed:
            profile("look.py", ["--lr", "1"])
        messages.append(str(failed.value))
        monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert messages[0] == messages[1]
    assert str(tmp_path) in messages[0]


@pytest.mark.parametrize("words", [[], [b" "], [b" ", b'{"arguments": [']], ids=["none", "one", "half"])
def test_a_client_that_is_ended_in_the_middle_harms_no_other(words, warm_folder):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(warm_folder / "fake"))
        for word in words:
            connection.sendall(word)
    assert profiled("bf16_autocast", "fake").ops


def test_a_fork_ends_at_the_timeout(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    with pytest.raises(ProfileError, match="within 10 s"):
        profile(script, timeout_s=10)
    wait_for_end((tmp_path / "pid").read_text())


@pytest.mark.parametrize(
    ("arguments", "variables"), [(("-c", "print(6 * 7)"), {}), (("-c", "print(42)"), {"PYTHONPATH": "x"})]
)
def test_other_commands_are_the_real_interpreters(arguments, variables, warm_folder, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    command = [warm_folder / "bin" / "python", *arguments]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "42\n"


def test_the_real_one_is_ours(warm_folder):
    command = [warm_folder / "bin" / "python", "-c", "import sys; print(sys.executable)"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == sys.executable
    )
