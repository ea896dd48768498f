"""Schedules at a person's word, and a service that is asked to end."""

import signal
from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.config.layers import load_config
from advisor.core.errors import LockedError
from advisor.core.values import OccurrenceState
from advisor.service.schedule import running as serving
from advisor.service.schedule.child_commands import Command
from advisor.service.schedule.managing import planned_schedule, remove_schedule
from advisor.service.schedule.running import Inline, Stop, Voice, run_due, run_now, serve
from advisor.store.database import open_store
from advisor.store.schedules import add_schedule, schedule_lock
from tests.schedules import make_schedule
from tests.unit.service.virtual_world import MayGoOn, ran


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
