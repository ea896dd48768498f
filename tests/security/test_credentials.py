"""What a script learns of advisor's credentials: as root and another user, with and without a sandbox."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from advisor.profile.environment import child_environment
from advisor.profile.readable import unreadable
from advisor.profile.sandbox import warning_for_root
from tests.machine import needs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

ROOT = Path(__file__).parents[2]
SECRET = "wJalrXUtnFEMI"
NOBODY = 65534
# Runs as advisor does, with a credential from its first moment; the script looks for it in /proc.
ADVISOR = """
import json, os, sys, tempfile
from pathlib import Path
from advisor.profile.environment import child_environment
from advisor.profile.attempt import run_child
from advisor.profile.sandbox import sandboxed

look = '''
import glob, os, sys
def holders(paths):
    for path in paths:
        try:
            if b"{secret}" in open(path, "rb").read():
                yield path
        except OSError:
            pass
print(len(glob.glob("/proc/[0-9]*/environ")), list(holders(glob.glob("/proc/[0-9]*/environ"))), end=" ")
print(list(holders([f"/proc/{{os.getppid()}}/environ"])))
'''
command = [sys.executable, "-c", look]
with tempfile.TemporaryDirectory() as folder:
    if sys.argv[1] == "sandbox":
        command = sandboxed(command, Path(folder)).command
    ending = run_child(command, environment=child_environment(os.environ, Path(folder)),
                       progress_path=Path(folder) / "p", timeout_s=60, progress=None)
print(os.getpid(), ending.log, end="")
"""


def interpreter(user: dict[str, Any]) -> str:
    """One that the user can start."""
    version = f"python3.{sys.version_info.minor}"
    for program in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        if program is not None and starts(program, user):
            return program
    pytest.skip("another user cannot start a Python of this version here")


def starts(program: str, user: dict[str, Any]) -> bool:
    """Whether it can, with what advisor imports."""
    path = f"{ROOT}{os.pathsep}{sysconfig.get_paths()['purelib']}"
    command = [program, "-c", "import advisor.profile.attempt"]
    try:
        return not subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, **user).returncode
    except OSError:
        return False


def seen(where: str, user: dict[str, Any], tmp_path: Path) -> tuple[int, str, str, str]:
    """Id of the advisor, and of the script: number of processes, those with the secret, its parent if so."""
    tmp_path.chmod(0o777)
    path = f"{ROOT}{os.pathsep}{sysconfig.get_paths()['purelib']}"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "AWS_SECRET_ACCESS_KEY": SECRET}
    done = subprocess.run(
        [interpreter(user), "-c", ADVISOR.format(secret=SECRET), where],
        env=environment, capture_output=True, text=True, timeout=60, cwd="/", **user,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    advisor, number, holders, parent = done.stdout.split()
    return int(advisor), number, holders, parent


def another_user() -> dict[str, Any]:
    """Nobody where we are root, else ourselves."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def test_the_scripts_parent_never_had_a_credential(tmp_path):
    *_, parent = seen("bare", {}, tmp_path)
    assert parent == "[]"


def test_another_user_than_root_finds_them_nowhere(tmp_path):
    *_, holders, parent = seen("bare", another_user(), tmp_path)
    assert (holders, parent) == ("[]", "[]")


@pytest.mark.skipif(os.geteuid() != 0, reason="for root")
def test_root_without_a_sandbox_finds_them_and_is_warned(tmp_path):
    """Nothing keeps root from it; the documentation says so."""
    advisor, _, holders, _ = seen("bare", {}, tmp_path)
    assert holders == f"['/proc/{advisor}/environ']"
    assert "credentials" in warning_for_root(in_sandbox=False)[0]
    assert warning_for_root(in_sandbox=True) == ()


def test_nobody_else_is_warned(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert warning_for_root(in_sandbox=False) == ()


@needs("bubblewrap")
@pytest.mark.parametrize("user", [{}, another_user()], ids=["this user", "another"])
def test_in_the_sandbox_no_process_of_outside_is_there(user, tmp_path):
    _, number, holders, parent = seen("sandbox", user, tmp_path)
    assert int(number) <= 4
    assert (holders, parent) == ("[]", "[]")


def test_this_process_can_be_read_again_afterwards():
    """Debuggers attach and crashes leave core files, but while a script runs."""
    with unreadable():
        assert dumpable() == 0
    assert dumpable() == 1


def test_the_last_of_several_threads_opens_it_again():
    """The first to end would open it for the other, and the second might close it for good."""
    first, second = unreadable(), unreadable()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert dumpable() == 0
    second.__exit__(None, None, None)
    assert dumpable() == 1


def dumpable() -> int:
    import ctypes

    return int(ctypes.CDLL(None).prctl(3))


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://ann:hunter22@db/prices",
        "redis://:hunter22@cache:6379",
        "host=db user=a password=hunter22",
    ],
)
def test_an_address_with_a_password_is_kept_back_whatever_its_name(value, tmp_path):
    for name in ("DATABASE_URL", "TORCH_HOME"):
        assert name not in child_environment({name: value}, tmp_path)


@pytest.mark.parametrize("value", ["https://host:8080/a@b", "sqlite:///here.db", "tcp://10.0.0.1:23456"])
def test_an_address_without_one_is_handed_on(value, tmp_path):
    assert child_environment({"TORCH_HOME": value}, tmp_path)["TORCH_HOME"] == value
