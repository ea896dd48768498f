"""A command runs as it does without us."""

import os
import pty
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advisor.core.errors import InputError
from advisor.core.values import RunStatus
from advisor.receipt.command import CommandEnding, run_command

ROOT = Path(__file__).resolve().parents[3]
# Runs a command as the service does, and says how it ended.
RUNNER = """
import json, os, sys
from advisor.receipt.command import run_command
ending, _ = run_command(sys.argv[1:], os.environ, lambda at: None)
print(json.dumps([ending.returncode, ending.status]), flush=True)
"""
# Says that it is ready to be signalled, then what it got.
WAITS = """
import signal, sys
awaited = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
print("ready", flush=True)
print("got", signal.Signals(signal.sigwait(awaited)).name, flush=True)
sys.exit(3)
"""
# Waits for an interrupt, then a little for another one.
COUNTS = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("ready", flush=True)
signal.sigwait({signal.SIGINT})
print("one", "more" if signal.sigtimedwait({signal.SIGINT}, 0.3) else "alone", flush=True)
"""


def ran(*command: str) -> CommandEnding:
    return run_command(command, os.environ, lambda _: None)[0]


@contextmanager
def runner(*command: str, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, *command],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True, **settings,
    ) as process:  # fmt: skip
        yield process


def test_time_and_exit_code_are_the_commands():
    before = datetime.now(UTC)
    ending = ran("sh", "-c", "exit 7")
    assert (ending.returncode, ending.exit_code, ending.status) == (7, 7, RunStatus.FAILED)
    assert before <= ending.started_at <= datetime.now(UTC)
    assert 0 < ending.duration_s < (datetime.now(UTC) - before + timedelta(seconds=1)).total_seconds()
    assert ran("true").status is RunStatus.FINISHED


def test_looking_around_does_not_count_as_its_time(monkeypatch):
    """The command ends at 5 s of this clock; looking around goes on until 100 s."""
    clock = iter((0.0, 5.0))
    monkeypatch.setattr("advisor.receipt.command.time", SimpleNamespace(monotonic=lambda: next(clock)))
    ending, looked = run_command(["true"], os.environ, lambda at: at)
    assert ending.duration_s == 5.0
    assert looked == ending.started_at


def test_what_was_open_for_the_command_stays_open(tmp_path):
    with (tmp_path / "file").open("w+") as file:
        os.set_inheritable(file.fileno(), True)
        assert ran("sh", "-c", f"echo through >/dev/fd/{file.fileno()}").returncode == 0
        file.seek(0)
        assert file.read() == "through\n"


@pytest.mark.parametrize(
    ("script", "code", "status"),
    [
        ("kill -TERM $$", 143, RunStatus.INTERRUPTED),
        ("kill -KILL $$", 137, RunStatus.INTERRUPTED),
        ("kill -SEGV $$", 139, RunStatus.FAILED),
        ("kill -ABRT $$", 134, RunStatus.FAILED),
        ("exit 143", 143, RunStatus.INTERRUPTED),
        ("exit 130", 130, RunStatus.INTERRUPTED),
        ("exit 255", 255, RunStatus.FAILED),
    ],
)
def test_a_signal_from_outside_interrupts_and_a_crash_fails(script, code, status):
    ending = ran("sh", "-c", script)
    assert (ending.exit_code, ending.status) == (code, status)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP"])
def test_a_signal_reaches_the_command_and_we_outlive_it(name):
    with runner(sys.executable, "-c", WAITS) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))
        assert process.stdout.readline() == f"got {name}\n"
        assert process.stdout.readline() == '[3, "failed"]\n'
        assert process.wait() == 0


def frames_of(thread: int) -> list[traceback.FrameSummary]:
    return traceback.extract_stack(sys._current_frames()[thread])


def test_a_signal_that_another_thread_took_is_handed_on():
    """The main thread sleeps on, as it does where a signal comes just before it begins to wait."""
    main = threading.get_ident()

    def take(_: datetime) -> None:
        # Where it waits for the command, not for the start of this thread.
        while not any(frame.name == "wait" and "futures" in frame.filename for frame in frames_of(main)):
            os.sched_yield()
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    ending, _ = run_command(["sleep", "30"], os.environ, take)
    assert ending.returncode == -signal.SIGUSR1


def test_a_terminal_interrupts_both_and_the_command_once():
    """A typed Ctrl-C reaches all in the terminal's foreground: handing it on would be a second one."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", RUNNER, sys.executable, "-c", COUNTS])  # noqa: S606
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        seen = b""
        while b"ready" not in seen:
            seen += screen.read(1024)
        screen.write(b"\x03")
        while b"finished" not in seen:
            seen += screen.read(1024)
        assert os.waitpid(pid, 0)[1] == 0
    assert b"one alone" in seen


def test_what_is_ignored_stays_ignored():
    """As nohup has it."""
    script = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)"
    with runner(
        sys.executable, "-c", script, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ) as process:
        assert process.stdout.readline() == "True\n"


@pytest.mark.parametrize(
    ("program", "why"), [("no-such-program", "No such file"), ("/", "Permission denied")]
)
def test_what_cannot_be_run_is_an_error_of_the_input(program, why):
    with pytest.raises(InputError, match=f"cannot run '{program}': {why}.*advisor run -- python"):
        ran(program)
