import shutil
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.environment import candidates
from tests.programs import write_program


def make_interpreter(folder):
    return write_program(folder / "bin/python", f'exec {sys.executable} "$@"')


def test_the_active_environment_comes_first_then_ours(tmp_path):
    venv, conda = make_interpreter(tmp_path / "venv"), make_interpreter(tmp_path / "conda")
    environment = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert candidates(None, environment) == [venv, conda, Path(sys.executable)]


def test_without_an_environment_ours_is_taken():
    assert candidates(None, {}) == [Path(sys.executable)]


def test_a_stale_environment_is_passed_over(tmp_path):
    assert candidates(None, {"VIRTUAL_ENV": str(tmp_path)}) == [Path(sys.executable)]


def test_a_named_interpreter_is_the_only_one(tmp_path):
    path = make_interpreter(tmp_path)
    assert candidates(path, {"VIRTUAL_ENV": "/elsewhere"}) == [path]
    assert candidates(tmp_path, {}) == [path]


@pytest.mark.parametrize("name", ["missing", "data.txt"])
def test_a_wrong_path_says_what_is_allowed(name, tmp_path):
    (tmp_path / "data.txt").write_text("")
    with pytest.raises(InputError, match=r"not an interpreter .* \.venv/bin/python"):
        candidates(tmp_path / name, {})


@pytest.mark.parametrize("program", ["ls", "rm", "sh", "true", "cat"])
def test_another_program_is_no_interpreter(program):
    path = Path(shutil.which(program))
    with pytest.raises(InputError, match=rf"'{path}' is no Python interpreter\. Name an executable"):
        candidates(path, {})


def test_a_file_that_does_not_start_says_so(tmp_path):
    broken = make_interpreter(tmp_path)
    broken.write_text("#!/no/such/program\n")
    with pytest.raises(InputError, match=r"does not start: .*Name an executable"):
        candidates(broken, {})


def test_a_program_that_does_not_answer_is_given_up(tmp_path, monkeypatch):
    slow = make_interpreter(tmp_path)
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    monkeypatch.setattr("advisor.profile.environment._ANSWER_S", 0.2)
    with pytest.raises(InputError, match=r"does not start: .*timed out"):
        candidates(slow, {})
