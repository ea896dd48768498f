"""Where long work is: a live line on a terminal, now and then a line elsewhere."""

import io
import sys
import threading
from typing import Any

import pytest

from advisor.cli import listening as module
from advisor.cli.listening import TERMINAL, Narration, in_words, tell_until
from advisor.payload.protocol import RunPhase
from advisor.profile.profiling import ProgressEvent


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def test_step_phase_elapsed_time_and_limit(clock):
    narration = Narration("profiling train.py", limit_s=300.0, clock=clock)
    narration.update("importing torch")
    clock.now_s += 42.9
    assert narration.line() == "profiling train.py: importing torch (42 s of at most 5 min)"
    clock.now_s += 68
    assert narration.line() == "profiling train.py: importing torch (1 min 50 s of at most 5 min)"


def test_a_step_without_phases_and_limit(clock):
    narration = Narration("reading jobs.csv", clock=clock)
    clock.now_s += 125
    assert narration.line() == "reading jobs.csv (2 min 5 s)"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (ProgressEvent(phase=RunPhase.TORCH), "importing torch"),
        (ProgressEvent(phase=RunPhase.SCRIPT), "imports and set-up of the script"),
        (ProgressEvent(phase=RunPhase.EVALUATION, done=120), "evaluation before training, batch 120"),
        (
            ProgressEvent(phase=RunPhase.EVALUATION, step=2, done=1200),
            "evaluation after optimizer step 2, batch 1,200",
        ),
        (ProgressEvent(phase=RunPhase.TRAINING, step=1, num_steps=3, done=1), "optimizer step 1 of 3"),
        (
            ProgressEvent(phase=RunPhase.TRAINING, step=1, num_steps=3, done=37),
            "optimizer step 1 of 3, micro-step 37",
        ),
        (
            ProgressEvent(phase=RunPhase.TRAINING, step=2, num_steps=3, done=1, total=40),
            "optimizer step 2 of 3, micro-step 1 of 40",
        ),
        (ProgressEvent(phase=RunPhase.TRAINING, step=9), "optimizer step 9"),
        (ProgressEvent(phase=RunPhase.MEASURING, step=4, num_steps=12), "measuring, optimizer step 4 of 12"),
    ],
)
def test_the_phases_in_words(event, words):
    assert in_words(event) == words


def test_lines_that_tell_no_event_change_nothing(clock):
    narration = Narration("profiling train.py", clock=clock)
    narration.follow('{"phase": "evaluation", "done": 3}')
    for line in (
        "",
        "profiling train.py with python",
        '{"phase": "mining"}',
        '{"phase": "evaluation", "done": -1}',
    ):
        narration.follow(line)
    assert narration.line() == "profiling train.py: evaluation before training, batch 3 (0 s)"


def test_a_line_each_time_the_wait_was_in_vain(clock, capsys):
    narration = Narration("pulling prices", clock=clock)
    waits = iter([False, False, True])

    def has_ended() -> bool:
        clock.now_s += module.EVERY_S
        return next(waits)

    tell_until(has_ended, narration.line)
    assert capsys.readouterr().err == "pulling prices (10 s)\npulling prices (20 s)\n"


def test_nothing_is_said_of_what_is_quick(capsys):
    with TERMINAL.step("turning") as narration:
        narration.update("quickly")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_the_lines_end_with_the_step_whatever_happens(monkeypatch):
    threads: list[Any] = []

    class Thread(threading.Thread):
        def __init__(self, **arguments: Any) -> None:
            threads.append(self)
            super().__init__(**arguments)

    monkeypatch.setattr(threading, "Thread", Thread)
    with pytest.raises(KeyboardInterrupt), TERMINAL.step("turning"):
        raise KeyboardInterrupt
    assert [thread.is_alive() for thread in threads] == [False]


def test_a_live_line_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    with TERMINAL.step("profiling [red]train.py", limit_s=300.0) as narration:
        narration.update("importing torch")
    assert "profiling [red]train.py: importing torch (0 s of at most 5 min)" in terminal.getvalue()
