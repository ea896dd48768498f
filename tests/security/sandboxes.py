"""What tests of the sandbox share: commands of a shell and of Python in it, as root and as another user."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.profile.sandbox import NOBODY, sandboxed

IS_ROOT = os.geteuid() == 0
# Root's tests run as an ordinary user, too.
USERS = ["this user", "ordinary user"] if IS_ROOT else ["this user"]


def in_sandbox(command: list[str], job: Path, *, user: str = "this user") -> subprocess.CompletedProcess[str]:
    """A command in the sandbox, as one of ``USERS``."""
    job.mkdir(exist_ok=True)
    whole = sandboxed(command, job).command
    if user == "this user":
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)
    for path in (job, *job.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return subprocess.run(
        whole, capture_output=True, text=True, check=False, timeout=60,
        user=NOBODY, group=NOBODY, extra_groups=[],
    )  # fmt: skip


def shell(code: str, tmp_path: Path, *, user: str = "this user") -> subprocess.CompletedProcess[str]:
    """Code of a shell in the sandbox."""
    return in_sandbox([shutil.which("sh") or "sh", "-c", code], tmp_path / "job", user=user)


def python(code: str, tmp_path: Path, *, user: str = "this user") -> str:
    """What code of the system's Python prints in the sandbox; it must end well."""
    program = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    if user != "this user" and not program.startswith("/usr"):
        pytest.skip("an ordinary user cannot start this Python: it needs one in /usr")
    done = in_sandbox([program, "-I", "-c", code], tmp_path / "job", user=user)
    assert done.returncode == 0, done.stderr
    return done.stdout
