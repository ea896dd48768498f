"""Schedules at a person's word, and a service that is asked to end."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from advisor.config.layers import Config, load_config
from advisor.core.errors import InputError, LeaseTakenError
from advisor.core.values import OccurrenceState
from advisor.service import serving
from advisor.service.child_commands import Command
from advisor.service.scheduling import planned_schedule, remove_schedule
from advisor.service.serving import Inline, Stop, Voice, run_due, run_now, serve
from advisor.store.database import open_store
from advisor.store.occurrences import Claim, Claimant, claim_now
from advisor.store.schedules import add_schedule
from tests.schedules import AT, make_schedule
from tests.unit.service.virtual_world import MayGoOn, ran


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A database with one schedule."""
    url = f"sqlite:///{tmp_path}/advisor.db"
    with open_store(url) as store:
        add_schedule(store, make_schedule(folder=str(tmp_path)))
    return load_config({"store.url": url})


@pytest.fixture
def voice() -> Voice:
    """Nobody is sent anything, and the log is dropped."""
    return Voice(deliver=lambda outgoing: pytest.fail(f"{outgoing} was sent"), log=lambda _line: None)


def test_run_now_gives_the_occurrence(config: Config, voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "run_command", lambda _, may_go_on: ran(0 if may_go_on() else 1))
    occurrence = run_now("weekly", config, voice)
    assert (occurrence.state, occurrence.exit_code, occurrence.attempts) == (OccurrenceState.DONE, 0, 1)
    assert planned_schedule("weekly", config).past == (occurrence,)


def test_whoever_interrupts_run_now_leaves_nothing_to_a_service(
    config: Config, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(command: Command, may_go_on: MayGoOn) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "run_command", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_now("weekly", config, voice)
    (only,) = planned_schedule("weekly", config).past
    assert (only.state, only.outcome, only.expires_at) == (OccurrenceState.FAILED, "interrupted", None)


def test_run_now_waits_for_nobody(config: Config, voice: Voice) -> None:
    schedule = planned_schedule("weekly", config).schedule
    with open_store(config.settings.store.url) as store:
        by = Claimant(name="a service", now=AT, for_s=1e9)
        assert claim_now(store, Claim(schedule=schedule, due_at=AT), by)
    with pytest.raises(LeaseTakenError, match="weekly runs already: `advisor schedule show weekly`"):
        run_now("weekly", config, voice)


def test_a_schedule_that_is_removed_while_it_runs(
    config: Config, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(command: Command, may_go_on: MayGoOn) -> object:
        remove_schedule("weekly", config)
        return ran()

    monkeypatch.setattr(serving, "run_command", remove)
    with pytest.raises(InputError, match="weekly was removed while it ran"):
        run_now("weekly", config, voice)


def test_run_due_runs_what_is_due_and_no_more(
    config: Config, voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = planned_schedule("weekly", config).schedule
    commands: list[Command] = []

    def run(command: Command, may_go_on: MayGoOn) -> object:
        commands.append(command)
        return ran()

    monkeypatch.setattr(serving, "run_command", run)
    monkeypatch.setattr(serving, "now", lambda: schedule.settled_until + timedelta(hours=1))
    run_due(config, voice)
    assert commands == []
    monkeypatch.setattr(serving, "now", lambda: schedule.settled_until + timedelta(days=1))
    run_due(config, voice)
    run_due(config, voice)
    assert [command.words for command in commands] == [("prices", "refresh")]
    assert commands[0].timeout_s == config.settings.schedule.timeout == 3600


def test_a_service_that_is_asked_to_end_ends(config: Config) -> None:
    lines: list[str] = []
    stop = Stop()

    def log(line: str) -> None:
        lines.append(line)
        stop()

    voice = Voice(deliver=lambda _outgoing: "", log=log)
    serve(config, voice, stop)
    assert lines[0].endswith("Ctrl-C or SIGTERM ends it")
    assert lines[-1] == "ended"


def test_asked_twice_it_hurries() -> None:
    stop = Stop()
    stop(signal.SIGTERM, None)
    assert (stop.is_asked, stop.is_hurried) == (True, False)
    stop(signal.SIGTERM, None)
    assert (stop.is_asked, stop.is_hurried) == (True, True)


def test_inline_runs_at_once_and_gives_what_came_of_it() -> None:
    assert Inline().submit(max, 1, 3).result() == 3
    with pytest.raises(ZeroDivisionError):
        Inline().submit(divmod, 1, 0)


def test_a_schedule_is_as_it_was_kept(config: Config) -> None:
    kept = planned_schedule("weekly", config).schedule
    assert kept == replace(make_schedule(), folder=kept.folder)
