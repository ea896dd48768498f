"""The command inside this process answers as a process of its own does, and leaves nothing behind."""

import os
import signal
import sys
from pathlib import Path

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Shell
from tests.end_to_end.in_process import StillRunningError


@pytest.fixture
def shell(tmp_path):
    shell = Shell(folder=tmp_path)
    write_trace(make_trace(), tmp_path / "t.json.gz")
    return shell


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (("--version",), {}),
        (("--help",), {}),
        ((), {}),
        (("recomend",), {}),
        (("gpus", "A1000"), {}),
        (("predict", "t.json.gz", "--gpu", "T4"), {"COLUMNS": "80"}),
        (("recommend", "t.json.gz", "--iterations", "100", "--budget", "0.001", "--offline", "--json"), {}),
        (("config", "show"), {"ADVISOR_CLOUD__MAX_GPUS": "2", "ADVISOR_NONSENSE": "1"}),
        (("config", "show"), {"ADVISOR_CLOUD__MAX_GPUS": "many"}),
    ],
)
def test_both_ways_answer_the_same(shell, arguments, environ):
    assert shell.run(*arguments, **environ) == shell.run_process(*arguments, **environ)


def state() -> tuple[object, ...]:
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)]
    files = [os.fstat(number) for number in range(3)]
    streams = sys.stdin, sys.stdout, sys.stderr, sys.argv, sys.modules["__main__"]
    return handlers, [(file.st_dev, file.st_ino) for file in files], streams, dict(os.environ), Path.cwd()


@pytest.mark.parametrize("arguments", [("gpus",), ("nonsense",), ("predict", "no.json.gz")])
def test_nothing_of_a_call_is_left(shell, arguments):
    before = state()
    shell.run(*arguments, ADVISOR_CLOUD__MAX_GPUS="2")
    assert state() == before


def test_one_call_does_not_see_the_settings_of_another(shell):
    """Trust in a project is kept for the length of a command."""
    shell.write(".advisor.yaml", "cloud: {max_gpus: 2}\n")
    plain = shell.run("config", "show", "--json").document
    shell.run("--trust-project", "config", "show", ADVISOR_CLOUD__MAX_GPUS="3")
    assert shell.run("config", "show", "--json").document == plain


def test_what_children_print_is_captured_as_well(shell, monkeypatch):
    monkeypatch.setattr("advisor.__main__.main", lambda: os.system("echo out; echo err >&2"))  # noqa: S605
    answer = shell.run()
    assert (answer.code, answer.out, answer.err) == (0, "out\n", "err\n")


def test_a_crash_is_an_answer(shell, monkeypatch):
    monkeypatch.setattr("advisor.__main__.main", lambda: 1 / 0)
    answer = shell.run()
    assert answer.code == 1
    assert answer.err.endswith("ZeroDivisionError: division by zero\n")


def test_what_does_not_end_is_stopped(shell, monkeypatch):
    monkeypatch.setattr("advisor.__main__.main", signal.pause)
    with pytest.raises(StillRunningError, match=r"within 0\.05 s"):
        shell.run(timeout_s=0.05)


@pytest.mark.parametrize("left_s", [0.0, 300.0])
def test_the_timer_of_the_test_goes_on(shell, left_s):
    handler = signal.getsignal(signal.SIGALRM)
    before_s, _ = signal.setitimer(signal.ITIMER_REAL, left_s)
    try:
        shell.run("gpus", timeout_s=200)
        assert left_s - 100 < signal.getitimer(signal.ITIMER_REAL)[0] <= left_s
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, before_s)
