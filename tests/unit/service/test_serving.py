"""Schedules at a person's word, and a service that is asked to end."""

import hashlib
import json
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from advisor.config.layers import load_config
from advisor.core.errors import LockedError
from advisor.core.values import OccurrenceState
from advisor.service.schedule import child_commands
from advisor.service.schedule import running as serving
from advisor.service.schedule.child_commands import MOST_KEPT_BYTES, Command, Ending, run_command
from advisor.service.schedule.managing import planned_schedule, remove_schedule
from advisor.service.schedule.running import Inline, Stop, Voice, run_due, run_now, serve
from advisor.store.database import open_store
from advisor.store.schedules import add_schedule, schedule_lock
from tests.schedules import make_schedule
from tests.unit.service.virtual_world import MayGoOn, ran
from tests.waiting import wait_for_end


@pytest.fixture
def settings(tmp_path):
    """Those of a database with one schedule."""
    url = f"sqlite:///{tmp_path}/advisor.db"
    with open_store(url) as store:
        add_schedule(store, make_schedule(folder=str(tmp_path)))
    return load_config({"store.url": url}).settings


@pytest.fixture
def voice():
    """Nobody is sent anything, and the log is dropped."""
    return Voice(deliver=lambda outgoing: pytest.fail(f"{outgoing} was sent"), log=lambda _line: None)


def test_run_now_gives_the_occurrence(settings, voice, monkeypatch):
    monkeypatch.setattr(serving, "run_command", lambda _, may_go_on: ran(0 if may_go_on() else 1))
    occurrence = run_now("weekly", settings.store, settings.schedule, voice)
    assert (occurrence.state, occurrence.exit_code, occurrence.attempts) == (OccurrenceState.DONE, 0, 1)
    assert planned_schedule("weekly", settings.store).past == (occurrence,)


def test_whoever_interrupts_run_now_leaves_nothing_to_a_service(settings, voice, monkeypatch):
    def interrupt(command: Command, may_go_on: MayGoOn) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "run_command", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_now("weekly", settings.store, settings.schedule, voice)
    (only,) = planned_schedule("weekly", settings.store).past
    assert (only.state, only.outcome, only.expires_at) == (OccurrenceState.FAILED, "interrupted", None)


def test_run_now_does_not_wait(settings, voice):
    schedule = planned_schedule("weekly", settings.store).schedule
    with (
        open_store(settings.store.url) as store,
        schedule_lock(store, schedule, "process 7 on elsewhere"),
        pytest.raises(LockedError, match=r"weekly runs already: .* locked by process 7 on elsewhere"),
    ):
        run_now("weekly", settings.store, settings.schedule, voice)


def test_a_schedule_that_is_removed_while_it_runs(settings, monkeypatch):
    def remove(command: Command, may_go_on: MayGoOn) -> object:
        remove_schedule("weekly", settings.store)
        return ran()

    monkeypatch.setattr(serving, "run_command", remove)
    lines: list[str] = []
    voice = Voice(deliver=lambda _outgoing: "", log=lines.append)
    assert run_now("weekly", settings.store, settings.schedule, voice).exit_code == 0
    assert "its end is not noted: the schedule was removed" in lines[-1]


def test_run_due_runs_what_is_due_and_no_more(settings, voice, monkeypatch):
    schedule = planned_schedule("weekly", settings.store).schedule
    commands: list[Command] = []

    def run(command: Command, may_go_on: MayGoOn) -> object:
        commands.append(command)
        return ran()

    monkeypatch.setattr(serving, "run_command", run)
    monkeypatch.setattr(serving, "now", lambda: schedule.settled_until + timedelta(hours=1))
    run_due(settings.store, settings.schedule, voice)
    assert commands == []
    monkeypatch.setattr(serving, "now", lambda: schedule.settled_until + timedelta(days=1))
    run_due(settings.store, settings.schedule, voice)
    run_due(settings.store, settings.schedule, voice)
    assert [command.words for command in commands] == [("prices", "refresh")]
    assert commands[0].timeout_s == settings.schedule.timeout == 3600


def test_a_service_that_is_asked_to_end_ends(settings):
    lines: list[str] = []
    stop = Stop()

    def log(line: str) -> None:
        lines.append(line)
        stop()

    voice = Voice(deliver=lambda _outgoing: "", log=log)
    serve(settings.store, settings.schedule, voice, stop)
    assert lines[0].endswith("Ctrl-C or SIGTERM ends it")
    assert lines[-1] == "ended"


def test_asked_twice_it_hurries():
    stop = Stop()
    for is_hurried in (False, True):
        stop(signal.SIGTERM, None)
        assert (stop.is_asked, stop.is_hurried) == (True, is_hurried)


def test_inline_runs_at_once_and_gives_what_came_of_it():
    assert Inline().submit(max, 1, 3).result() == 3
    with pytest.raises(ZeroDivisionError):
        Inline().submit(divmod, 1, 0)


def test_a_schedule_is_as_it_was_kept(settings):
    kept = planned_schedule("weekly", settings.store).schedule
    assert kept == replace(make_schedule(), folder=kept.folder)


@pytest.fixture
def in_its_place(monkeypatch):
    """Python code that runs where advisor would."""

    real = subprocess.Popen

    def put(code: str) -> None:
        def start(words: list[str], **more: Any) -> Any:
            assert words[:4] == [sys.executable, "-P", "-m", "advisor"]
            return real([sys.executable, "-c", code, *words[4:]], **more)

        monkeypatch.setattr("advisor.core.processes.subprocess.Popen", start)

    return put


def command(folder: Path, *words: str, timeout_s: float = 60) -> Command:
    return Command(words=words, folder=str(folder), key="5f@2026", timeout_s=timeout_s)


def always() -> bool:
    return True


def test_advisor_runs_in_its_folder(tmp_path):
    done = run_command(command(tmp_path, "--version"), always)
    assert (done.ending, done.exit_code) == (Ending.BY_ITSELF, 0)
    assert done.output_sha256 == hashlib.sha256(f"{done.output}\n".encode()).hexdigest()


def test_words_folder_key_and_streams(tmp_path, in_its_place):
    in_its_place(
        "import json, os, sys; key = os.environ['ADVISOR_DELIVERY_KEY'];"
        " print(json.dumps([sys.argv[1:], os.getcwd(), key, sys.stdin.read()]));"
        " print('warning: w', file=sys.stderr); sys.exit(4)"
    )
    done = run_command(command(tmp_path, "recommend", "a b", "--", "$x"), always)
    first, second = done.output.splitlines()
    assert json.loads(first) == [["recommend", "a b", "--", "$x"], str(tmp_path), "5f@2026", ""]
    assert (second, done.exit_code, done.recommended) == ("warning: w", 4, None)


def test_what_it_recommends_is_read_from_its_answer(tmp_path, in_its_place):
    write = "import os; open(os.environ['ADVISOR_ANSWER_FILE'], 'w').write({!r})"
    in_its_place(write.format('{"recommended": "aws/x"}'))
    assert run_command(command(tmp_path), always).recommended == "aws/x"
    for answer in ('{"recommended": null}', '{"recommended": 7}', "[]", "{", "\x00"):
        in_its_place(write.format(answer))
        assert run_command(command(tmp_path), always).recommended is None


def test_what_it_could_not_send_is_read_from_its_answer(tmp_path, in_its_place):
    outcomes = {"a": "sent", "b": "busy", "c": "failed", "d": "perhaps", "e": "sent-before"}
    deliveries = [
        {"channel": name, "outcome": outcome, "error": "says 550" if name == "c" else None}
        for name, outcome in outcomes.items()
    ]
    answer = json.dumps({"deliveries": deliveries})
    in_its_place(f"import os; open(os.environ['ADVISOR_ANSWER_FILE'], 'w').write({answer!r})")
    assert run_command(command(tmp_path), always).undelivered == "b: busy; c: says 550"


def test_secrets_are_not_kept_and_a_long_output_loses_its_middle(tmp_path, in_its_place):
    in_its_place("print('begin password=hunter22'); [print(f'line {n}') for n in range(30000)]; print('end')")
    done = run_command(command(tmp_path), always)
    lines = done.output.splitlines()
    assert (lines[0], lines[-1]) == ("begin password=***", "end")
    assert len(done.output) < MOST_KEPT_BYTES + 200
    assert sum("bytes are left out" in line for line in lines) == 1
    whole = "begin password=hunter22\n" + "".join(f"line {n}\n" for n in range(30000)) + "end\n"
    assert done.output_sha256 == hashlib.sha256(whole.encode()).hexdigest()


def test_a_command_that_must_end_ends_with_its_children(tmp_path, in_its_place, monkeypatch):
    monkeypatch.setattr(child_commands, "_POLL_S", 0.05)
    in_its_place(
        "import os, subprocess, sys, time; print('begun', flush=True);"
        " inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        " open('new', 'w').write(str(inner.pid)); os.replace('new', 'pid'); inner.wait()"
    )
    done = run_command(command(tmp_path), lambda: not (tmp_path / "pid").exists())
    assert (done.ending, done.exit_code, done.output) == (Ending.STOPPED, None, "begun")
    wait_for_end((tmp_path / "pid").read_text())


def test_the_time_limit_ends_it(tmp_path, in_its_place, monkeypatch):
    monkeypatch.setattr(child_commands, "_POLL_S", 0.05)
    in_its_place("import time; time.sleep(600)")
    done = run_command(command(tmp_path, timeout_s=0.1), always)
    assert (done.ending, done.exit_code) == (Ending.TIMED_OUT, None)


def test_one_that_will_not_end_is_killed(tmp_path, in_its_place, monkeypatch):
    monkeypatch.setattr(child_commands, "_POLL_S", 0.05)
    monkeypatch.setattr(child_commands, "_LAST_WORDS_S", 0.1)
    in_its_place(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('up', 'w'); time.sleep(600)"
    )
    done = run_command(command(tmp_path), lambda: not (tmp_path / "up").exists())
    assert done.ending is Ending.STOPPED


def test_a_folder_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_command(command(tmp_path / "gone", "--version"), always)
