"""What a profiled script leaves behind: nothing, also when it is interrupted."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from advisor.core.errors import ProfileError
from advisor.profile import profile
from advisor.report.words import sentences
from tests.end_to_end.profile_scripts import LOOP
from tests.machine import needs
from tests.waiting import wait_for, wait_for_end

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]

SAVES = (
    LOOP
    + """
import os, shutil, tempfile
best = 0.0
for epoch, (inputs, labels) in enumerate(loader):
    train_step(inputs, labels)
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
    shutil.copyfile("last.pt", "best.pt")
    assert os.path.exists("best.pt")
    checkpoint = torch.load("best.pt", map_location=device)
    assert checkpoint["epoch"] == epoch
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(b"left behind")
"""
)
# Neither it nor its worker minds a polite request.
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
open("part", "w").write(f"{os.getpid()} {worker.pid}")
os.rename("part", "pids")
while True:
    try:
        time.sleep(100)
    except BaseException:
        pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return home


def write(folder: Path, code: str) -> Path:
    script = folder / "train.py"
    script.write_text(textwrap.dedent(code))
    return script


def test_checkpoints_are_read_back_and_the_owners_stay(folder, tmp_path):
    (folder / "best.pt").write_text("weeks of work")
    trace = profile(write(folder, SAVES))
    assert trace.batch_size == 8
    assert (folder / "best.pt").read_text() == "weeks of work"
    assert sorted(path.name for path in folder.iterdir()) == ["best.pt", "train.py"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert any("torch.save" in warning for warning in sentences(trace.warnings))


ROTATES = (
    LOOP
    + """
import glob, os
os.makedirs("steps", exist_ok=True)
for step, (inputs, labels) in enumerate(loader, 100):
    train_step(inputs, labels)
    torch.save(model.state_dict(), f"steps/{step}.tmp")
    os.replace(f"steps/{step}.tmp", f"steps/{step}.pt")
    open(f"steps/{step}.txt", "w").close()
    for old in sorted(glob.glob("steps/*.pt"))[:-3]:
        os.remove(old)
    os.remove(f"steps/{step}.txt")
    assert len(os.listdir("steps")) == 3 and os.path.exists(f"steps/{step}.pt")
"""
)


def test_old_checkpoints_of_the_owner_are_not_rotated_away(folder):
    (folder / "steps").mkdir()
    names = [f"{step:03}.pt" for step in range(90, 96)]
    for name in names:
        (folder / "steps" / name).write_text("weeks of work")
    trace = profile(write(folder, ROTATES))
    assert sorted(path.name for path in (folder / "steps").iterdir()) == names
    assert any("were kept" in warning for warning in sentences(trace.warnings))


@pytest.mark.usefixtures("cold_children")
@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGHUP, signal.SIGTERM]])
def test_interrupted_the_command_leaves_no_process_and_no_file(numbers, folder, tmp_path):
    write(folder, STUBBORN)
    command = subprocess.Popen(
        [sys.executable, "-m", "advisor", "profile", "train.py", "--out", "train.trace.json.gz"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    wait_for((folder / "pids").exists)
    for number in numbers:
        command.send_signal(number)
    printed = "".join(command.communicate(timeout=60))
    assert command.returncode == 128 + numbers[0]
    assert "Traceback" not in printed
    assert printed.splitlines()[-1] == "interrupted"
    for pid in (folder / "pids").read_text().split():
        wait_for_end(pid)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(path.name for path in folder.iterdir()) == ["pids", "train.py"]


WRITES = LOOP + "open('notes.txt', 'w')"
CONNECTS = LOOP + "import socket; socket.create_connection(('192.0.2.1', 80), timeout=20)"


def failed_in_sandbox(script: Path) -> str:
    """The error of a run in the sandbox."""
    with pytest.raises(ProfileError) as failed:
        profile(script, sandbox=True)
    return str(failed.value)


@needs("bubblewrap")
@pytest.mark.usefixtures("cold_children")
def test_in_the_sandbox_nothing_can_be_written(folder):
    text = failed_in_sandbox(write(folder, WRITES))
    assert "Read-only file system: 'notes.txt'" in text
    assert "without `profile.sandbox`" in text
    assert [path.name for path in folder.iterdir()] == ["train.py"]


MAKES_FOLDERS = (
    LOOP
    + """
import os
os.makedirs("runs/first", exist_ok=True)
os.makedirs("runs/first", exist_ok=True)
assert os.path.isdir("runs/first") and os.listdir("runs") == ["first"]
open("runs/first/notes.txt", "w").write("here")
assert open("runs/first/notes.txt").read() == "here" and os.listdir("runs/first") == ["notes.txt"]
os.remove("runs/first/notes.txt")
for inputs, labels in loader:
    train_step(inputs, labels)
"""
)


@needs("bubblewrap")
@pytest.mark.usefixtures("cold_children")
def test_in_the_sandbox_folders_for_what_is_saved_are_thrown_away(folder):
    """Was: Hugging Face's Trainer, which makes its output folder, could not be profiled there."""
    assert profile(write(folder, MAKES_FOLDERS), sandbox=True).batch_size == 8
    assert [path.name for path in folder.iterdir()] == ["train.py"]


@needs("bubblewrap")
@pytest.mark.usefixtures("cold_children")
def test_in_the_sandbox_there_is_no_network(folder):
    assert "Network is unreachable" in failed_in_sandbox(write(folder, CONNECTS))


@needs("bubblewrap")
def test_in_the_sandbox_the_trace_is_the_same(folder, tmp_path, monkeypatch):
    script = write(folder, SAVES)
    outside = profile(script)
    monkeypatch.delenv("VIRTUAL_ENV")
    inside = profile(script, sandbox=True)
    assert (inside.ops, inside.memory) == (outside.ops, outside.memory)
    assert list((tmp_path / "tmp").iterdir()) == []
