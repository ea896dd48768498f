"""The sandbox: its command line, and what a person is told where there can be none."""

import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.sandbox import check_sandbox, sandboxed, signalled
from tests.machine import needs
from tests.programs import write_program


def bubblewrap(folder: Path, code: str) -> None:
    """A program of that name that does what ``code`` says."""
    write_program(folder / "bwrap", code)


def test_without_bubblewrap_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"not installed: apt install bubblewrap.*Linux only"):
        check_sandbox()


def test_a_kernel_that_refuses_is_named(tmp_path, monkeypatch):
    bubblewrap(tmp_path, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"\(bwrap: No permissions to create .*\)\. Allow user namespaces"):
        check_sandbox()


def test_a_bubblewrap_that_does_not_start_is_named(tmp_path, monkeypatch):
    bubblewrap(tmp_path, "")
    (tmp_path / "bwrap").write_text("#!/no/such/program\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="bubblewrap does not start"):
        check_sandbox()


def test_one_that_works_passes(tmp_path, monkeypatch):
    bubblewrap(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    check_sandbox()


def test_only_the_jobs_folder_can_be_written(tmp_path):
    command = list(sandboxed(["python", "child.py"], tmp_path).command)
    assert command[:2] == ["/bin/sh", "-c"]
    assert command[3] == str(tmp_path / "seccomp")
    assert Path(command[4]).name == "bwrap"
    assert command[5:7] == ["--seccomp", "9"]
    assert command[-3:] == ["--", "python", "child.py"]
    assert not any(one == two == "/" for one, two in pairwise(command))
    binds = [position for position, part in enumerate(command) if part.startswith("--bind")]
    assert [command[at : at + 3] for at in binds] == [["--bind", str(tmp_path), str(tmp_path)]]
    assert {"--unshare-net", "--unshare-pid", "--die-with-parent"} < set(command)
    assert command[command.index("--chdir") + 1] == str(Path.cwd())


def test_cuda_finds_its_devices(tmp_path):
    command = list(sandboxed(["python"], tmp_path).command)
    # bubblewrap's --dev makes an empty /dev, so what comes before it would be covered.
    after = command[command.index("--dev") :]
    for device in ("nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
        at = after.index(f"/dev/{device}")
        assert after[at - 1 : at + 2] == ["--dev-bind-try", f"/dev/{device}", f"/dev/{device}"]


def test_signals_have_the_number_that_subprocess_gives_them():
    assert [signalled(code) for code in (None, 0, 5, 128, 137, 143, 200)] == [None, 0, 5, 128, -9, -15, 200]


def in_the_real_one(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """A shell in the sandbox."""
    return subprocess.run(
        sandboxed([shutil.which("sh"), "-c", code], folder).command,
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip


@needs("bubblewrap")
@pytest.mark.parametrize("begin", ["", "unshare --user --map-root-user --mount "])
def test_root_cannot_make_a_mount_writable_again(begin, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    code = f"mount -o remount,bind,rw {tmp_path} ; mount -o remount,bind,rw / ; echo 1 > {tmp_path}/b"
    ending = in_the_real_one(tmp_path / "mine", f"{begin}sh -c '{code}'")
    assert ending.returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@needs("bubblewrap")
def test_nobody_has_a_capability(tmp_path):
    ending = in_the_real_one(tmp_path, "grep CapEff /proc/self/status")
    assert int(ending.stdout.split()[1], 16) == 0


@needs("bubblewrap")
def test_daemons_cannot_be_reached_by_their_sockets(tmp_path):
    ending = in_the_real_one(tmp_path, "find /run /var/run/ -type s -o -type f")
    assert ending.stdout == ""


@needs("bubblewrap")
def test_the_real_one_isolates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    code = f"echo 1 > {tmp_path}/mine/a; echo 1 > {tmp_path}/b; kill -9 $$"
    ending = in_the_real_one(tmp_path / "mine", code)
    assert signalled(ending.returncode) == -9
    assert "Read-only file system" in ending.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "mine", "nothing", "seccomp"]
