"""Temporary folders: what a killed process left is removed by the next one, and nothing else."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.core.files import PREFIX, remove_left, temporary_folder

IS_ROOT = os.geteuid() == 0
# Makes a folder, tells its name, and waits to be killed.
HOLDS = """
import sys
from advisor.core.files import temporary_folder
with temporary_folder("profile") as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    """A process that holds a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def left(folders: Path, name: str = f"{PREFIX}profile-abcd0123") -> Path:
    """As a process leaves it that was killed."""
    (folders / name / "deep/er").mkdir(parents=True)
    (folders / name / "deep/er/file").touch()
    return folders / name


def test_it_is_removed_at_the_end():
    with temporary_folder("profile") as folder:
        (folder / "deep").mkdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_a_killed_process_leaves_it_to_the_next_one(folders):
    """Was: it stayed for good."""
    process, folder = holder()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (folder / "file").exists()
    with temporary_folder("steps") as own:
        assert list(folders.iterdir()) == [own]


def test_that_of_a_process_that_is_there_stays():
    process, folder = holder()
    try:
        assert remove_left() == []
        assert (folder / "file").exists()
    finally:
        process.communicate()
    assert not folder.exists()


@pytest.mark.parametrize(
    "name", ["advisor-profile-abcd0123", f"{PREFIX}notes", f"{PREFIX}profile-abcd0123.bak", "mine"]
)
def test_what_has_another_name_stays(name, folders):
    left(folders, name)
    assert remove_left() == []
    assert (folders / name / "deep/er/file").exists()


def test_links_are_not_followed(folders, tmp_path_factory):
    outside = left(tmp_path_factory.mktemp("outside"), "mine")
    (folders / f"{PREFIX}profile-abcd0123").symlink_to(outside)
    (left(folders, f"{PREFIX}profile-abcd0124") / "link").symlink_to(outside)
    assert remove_left() == [folders / f"{PREFIX}profile-abcd0124"]
    assert (outside / "deep/er/file").exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root makes folders of other users")
def test_that_of_another_user_stays(folders):
    folder = left(folders)
    os.chown(folder, 12345, 12345)
    assert remove_left() == []
    # Root gives a sandboxed script's folder to nobody.
    os.chown(folder, 65534, 65534)
    assert remove_left() == [folder]


def test_one_that_was_removed_before_it_was_locked_is_made_anew(folders, monkeypatch):
    """Two processes that begin at once."""
    lock, calls = fcntl.flock, []

    def after_another(opened: int, how: int) -> None:
        if not calls:
            calls.append(next(folders.iterdir()))
            calls[0].rmdir()
        lock(opened, how)

    monkeypatch.setattr(fcntl, "flock", after_another)
    with temporary_folder("profile") as folder:
        assert folder.is_dir()
        assert folder != calls[0]
