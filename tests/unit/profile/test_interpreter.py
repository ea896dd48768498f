"""Which interpreters are tried, in which order, and what is said of those that are none."""

import shutil
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.environment import candidates
from tests.programs import write_program

OURS = Path(sys.executable)


def python_in(folder: Path, *, mode: int = 0o755) -> Path:
    path = write_program(folder / "bin/python", f'exec {sys.executable} "$@"')
    path.chmod(mode)
    return path


@pytest.fixture
def nobody_is_root(monkeypatch):
    """Root may read all files; what may be run is asked of the mode."""
    monkeypatch.setattr("os.access", lambda path, _: bool(Path(path).stat().st_mode & 0o111))


def test_the_active_environment_comes_first_then_ours(tmp_path, monkeypatch):
    venv, conda = python_in(tmp_path / "venv"), python_in(tmp_path / "conda")
    folders = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert candidates(None, folders) == [venv, conda, OURS]
    assert candidates(None, {}) == [OURS]
    for variable, python in zip(folders, (venv, conda), strict=True):
        # Each counts alone, one known by two names once; "" does not mean the working folder.
        assert candidates(None, {variable: folders[variable]}) == [python, OURS]
        assert candidates(None, dict.fromkeys(folders, folders[variable])) == [python, OURS]
        monkeypatch.chdir(folders[variable])
        assert candidates(None, {variable: ""}) == [OURS]
    # A named one is the only one.
    assert candidates(conda, folders) == [conda]
    assert candidates(conda.parents[1], folders) == [conda]


def test_our_own_environment_is_tried_once():
    folder = OURS.parent.parent
    if folder / "bin" / "python" != OURS:
        pytest.skip("this interpreter has another name")
    assert candidates(None, {"VIRTUAL_ENV": str(folder)}) == [OURS]


def test_links_stay_links(tmp_path):
    real = python_in(tmp_path / "real")
    link = tmp_path / "linked" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    folders = {"VIRTUAL_ENV": str(tmp_path / "linked"), "CONDA_PREFIX": str(tmp_path / "real")}
    assert candidates(None, folders) == [link, real, OURS]


def test_what_cannot_be_run_is_passed_over(tmp_path, nobody_is_root, monkeypatch):
    python_in(tmp_path / "text", mode=0o644)
    (tmp_path / "folder" / "bin" / "python").mkdir(parents=True)
    for name in ("stale", "text", "folder"):
        assert candidates(None, {"VIRTUAL_ENV": str(tmp_path / name)}) == [OURS]
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert candidates(None, {}) == []


@pytest.mark.parametrize("name", ["missing", "data.txt", ".", "text/bin/python"])
def test_a_wrong_path_says_what_is_allowed(name, tmp_path, nobody_is_root):
    (tmp_path / "data.txt").write_text("")
    (tmp_path / "data.txt").chmod(0o644)
    python_in(tmp_path / "text", mode=0o644)
    with pytest.raises(InputError, match=r"not an interpreter .* \.venv/bin/python") as caught:
        candidates(tmp_path / name, {})
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("program", ["ls", "rm", "sh", "true", "cat"])
def test_another_program_is_no_interpreter(program):
    path = Path(shutil.which(program))
    with pytest.raises(InputError, match=rf"'{path}' is no Python interpreter\. Name an executable"):
        candidates(path, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [("#!/no/such/program\n", "Name an executable"), ("#!/bin/sh\nexec sleep 20\n", "timed out")],
)
def test_a_file_that_does_not_start_or_answer_says_so(text, words, tmp_path, monkeypatch):
    broken = python_in(tmp_path)
    broken.write_text(text)
    monkeypatch.setattr("advisor.profile.environment._ANSWER_S", 0.2)
    with pytest.raises(InputError, match=f"does not start: .*{words}"):
        candidates(broken, {})
