"""The command line as a listener: what it hears goes to standard error, arguments are flags."""

import io
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.main import get_command

from advisor.cli import app
from advisor.cli import listening as module
from advisor.cli.common import deadline_s, duration_s, moment, moment_or_duration_s, settings_with
from advisor.cli.listening import TERMINAL, Narration, in_words, tell_until
from advisor.config import layers as config_module
from advisor.config.layers import Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.payload.protocol import RunPhase
from advisor.profile.profiling import ProgressEvent
from advisor.report.plain import FLAGS
from advisor.service.listening import Listener


@pytest.mark.parametrize("listener", [TERMINAL, Listener()])
def test_what_listens_has_all_that_is_asked_of_it(listener):
    with listener.step("reading") as step:
        step.update("a phase")
        step.follow("no event")
    with listener.count("measuring") as count:
        count(1, 2)


def test_notes_and_warnings_go_to_standard_error(capsys):
    TERMINAL.note("one")
    TERMINAL.warn(["two", "three"])
    with TERMINAL.step("pulling prices", at_once=True):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "note: one",
        "warning: two",
        "warning: three",
        "note: pulling prices",
    ]


@pytest.mark.parametrize(
    ("argument", "flag"),
    [
        ("cloud.regions", "--region"),
        ("profile.fake_data", "--fake-data"),
        ("max_usd_per_h", "--max-price"),
        ("project", "--project"),
    ],
)
def test_an_argument_is_called_by_its_flag(argument, flag):
    assert TERMINAL.name_of(argument) == flag
    assert Listener().name_of(argument) == argument


def test_every_flag_that_differs_from_its_argument_exists():
    def flags(command: object) -> set[str]:
        own = {name for parameter in command.params for name in parameter.opts}  # type: ignore[attr-defined]
        return own.union(*(flags(inner) for inner in getattr(command, "commands", {}).values()))

    assert set(FLAGS.values()) <= flags(get_command(app))


def test_flags_are_dotted_names_and_warnings_are_told(monkeypatch, capsys):
    seen = []

    def load_config(flags: Any, *, trust_project: bool, name_of: Callable[[str], str]) -> Config:
        assert name_of("cloud.providers") == "--provider"
        seen.append(flags)
        return Config(settings=Settings(), origins={}, warnings=("a stray",))

    monkeypatch.setattr(config_module, "load_config", load_config)
    assert settings_with(cloud__max_gpus=4, prices__max_age=None).warnings == ("a stray",)
    assert seen == [{"cloud.max_gpus": 4, "prices.max_age": None}]
    assert capsys.readouterr().err == "warning: a stray\n"


def test_a_time_without_a_zone_is_utc():
    assert moment("--start", " 2026-11-01 ") == datetime(2026, 11, 1, tzinfo=UTC)
    assert moment("--start", "2026-11-01T01:00+01:00") == datetime(2026, 11, 1, tzinfo=UTC)


def test_how_far_back_or_since_when():
    assert moment_or_duration_s("--since", "12d") == 12 * 86400
    assert moment_or_duration_s("--since", "2026-11-01") == datetime(2026, 11, 1, tzinfo=UTC)
    with pytest.raises(InputError, match="--since: 'soon' is no time"):
        moment_or_duration_s("--since", "soon")


@pytest.mark.parametrize("text", ["12", "soon", "-3h", ""])
def test_what_is_no_duration_is_refused_with_its_flag(text):
    with pytest.raises(InputError, match="--since: "):
        duration_s("--since", text)


def test_a_deadline_lies_ahead_and_not_too_far():
    assert deadline_s("--deadline", None) is None
    assert deadline_s("--deadline", "1h30m") == 5400
    with pytest.raises(InputError, match="--deadline '-3h' lies in the past"):
        deadline_s("--deadline", "-3h")
    with pytest.raises(InputError, match=r"--deadline must be at most .*, got '999999w'"):
        deadline_s("--deadline", "999999w")


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
