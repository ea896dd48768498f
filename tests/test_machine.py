"""Tests that need a program of the system are skipped without it, and others do not see it."""

import shutil
import subprocess
import sys

import pytest

from tests import machine

ASKS = """
import shutil
from tests.machine import find, needs

@needs("util-linux")
def test_asks():
    assert shutil.which("setpriv")

def test_does_not_ask():
    assert shutil.which("sh") and not shutil.which("setpriv")
"""


@pytest.fixture
def ran(tmp_path):
    """The end of a run of the two tests above."""

    def run(shown: str) -> str:
        (tmp_path / "test_asks.py").write_text(ASKS)
        options = ("-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", tmp_path, "-q", "-rs")
        command = [sys.executable, "-m", "pytest", *options, "-W", "ignore", "--programs", shown, tmp_path]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    return run


@machine.needs("util-linux")
def test_programs_are_hidden_from_tests_that_do_not_ask(ran):
    assert "2 passed" in ran("asked")
    assert "1 failed, 1 passed" in ran("all")


def test_without_them_a_test_that_asks_is_skipped_with_its_reason(ran):
    shown = ran("none")
    assert "1 passed, 1 skipped" in shown
    assert "needs setpriv: apt install util-linux" in shown


def test_every_program_is_hidden_and_all_else_is_not():
    bare = machine.bare_path()
    assert [
        name for names in machine.PROGRAMS.values() for name in names if shutil.which(name, path=bare)
    ] == []
    assert shutil.which("sh", path=bare)
    assert shutil.which("env", path=bare)


def test_a_package_that_is_not_listed_cannot_be_asked_for():
    with pytest.raises(AssertionError, match="add nginx to"):
        machine.needs("nginx")
