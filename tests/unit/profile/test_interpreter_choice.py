"""The order, the doubles and the faults of interpreters; test_interpreter.py has the common cases."""

import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.environment import candidates

OURS = Path(sys.executable)


def environment_at(folder: Path, *, mode: int = 0o755) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(mode)
    return python


@pytest.fixture
def nobody_is_root(monkeypatch):
    """Root may read all files; what may be run is asked of the mode."""
    monkeypatch.setattr("os.access", lambda path, _: bool(Path(path).stat().st_mode & 0o111))


def test_an_environment_known_by_two_names_is_tried_once(tmp_path):
    python = environment_at(tmp_path)
    both = {"VIRTUAL_ENV": str(tmp_path), "CONDA_PREFIX": str(tmp_path)}
    assert candidates(None, both) == [python, OURS]


def test_our_own_environment_is_tried_once():
    folder = OURS.parent.parent
    if folder / "bin" / "python" != OURS:
        pytest.skip("this interpreter has another name")
    assert candidates(None, {"VIRTUAL_ENV": str(folder)}) == [OURS]


def test_links_stay_links(tmp_path):
    real = environment_at(tmp_path / "real")
    link = tmp_path / "linked" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    pythons = candidates(
        None, {"VIRTUAL_ENV": str(tmp_path / "linked"), "CONDA_PREFIX": str(tmp_path / "real")}
    )
    assert pythons == [link, real, OURS]


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_each_variable_counts_alone(variable, tmp_path):
    python = environment_at(tmp_path)
    assert candidates(None, {variable: str(tmp_path)}) == [python, OURS]


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_empty_variable_is_none(variable, tmp_path, monkeypatch):
    environment_at(tmp_path)
    monkeypatch.chdir(tmp_path)  # "" must not mean the working directory
    assert candidates(None, {variable: ""}) == [OURS]


def test_what_cannot_be_run_is_passed_over(tmp_path, nobody_is_root):
    environment_at(tmp_path, mode=0o644)
    assert candidates(None, {"VIRTUAL_ENV": str(tmp_path)}) == [OURS]


def test_a_folder_named_python_is_no_interpreter(tmp_path):
    (tmp_path / "bin" / "python").mkdir(parents=True)
    assert candidates(None, {"VIRTUAL_ENV": str(tmp_path)}) == [OURS]


def test_if_ours_is_gone_too_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert candidates(None, {}) == []


def test_a_folder_without_an_interpreter_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"not an interpreter") as caught:
        candidates(tmp_path, {})
    assert repr(str(tmp_path)) in str(caught.value)


def test_a_named_one_that_cannot_be_run_is_refused(tmp_path, nobody_is_root):
    with pytest.raises(InputError, match=r"not an interpreter"):
        candidates(environment_at(tmp_path, mode=0o644), {})


def test_a_named_one_wins_over_the_active_environment(tmp_path):
    active = environment_at(tmp_path / "active")
    named = environment_at(tmp_path / "named")
    assert candidates(named, {"VIRTUAL_ENV": str(active.parents[1])}) == [named]
