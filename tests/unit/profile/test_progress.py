"""The child tells where it is, a few times a second at most, and ends a script that swallows exceptions."""

import json
import os
import threading
from typing import Any

import pytest

from advisor.payload.progress import Position, Stopper, StopProfiling, Teller
from advisor.payload.protocol import ProgressLine, RunPhase
from advisor.profile.profiling import ProgressEvent, parse_event


class Reported:
    """A teller whose clock stands still, and what it wrote."""

    def __init__(self) -> None:
        self.now_s = 5.0
        self.lines: list[str] = []
        self.teller = Teller(self.lines.append, clock=lambda: self.now_s)

    def tell(self, event: ProgressLine) -> None:
        self.now_s += 1  # late enough for each
        self.teller.tell(event)

    @property
    def events(self) -> list[ProgressEvent | None]:
        return [parse_event(line) for line in self.lines]


@pytest.fixture
def reported():
    return Reported()


def test_phases_that_take_turns_are_limited_as_well(reported):
    for _ in range(1000):
        reported.teller.tell({"phase": RunPhase.EVALUATION, "done": 1})
        reported.teller.tell({"phase": RunPhase.TRAINING, "step": 1})
    assert [event.phase for event in reported.events if event] == [RunPhase.EVALUATION, RunPhase.TRAINING]


def test_micro_steps_know_how_many_there_are_after_the_first_step(reported):
    position = Position(reported.tell, 3)
    for step in (1, 2):
        for _ in range(2):
            position.went_backward()
        position.stepped(step)
    counts = [(event.step, event.num_steps, event.done, event.total) for event in reported.events if event]
    assert counts == [(1, 3, 1, None), (1, 3, 2, None), (2, 3, None, None),
                      (2, 3, 1, 2), (2, 3, 2, 2), (3, 3, None, None)]  # fmt: skip


def test_more_micro_steps_or_steps_than_expected_are_of_no_total(reported):
    position = Position(reported.tell, 1)
    position.went_backward()
    position.stepped(1)
    position.went_backward()
    position.went_backward()
    last = reported.events[-1]
    assert last == ProgressEvent(phase=RunPhase.TRAINING, step=2, done=2)


def test_an_evaluation_knows_which_step_it_follows(reported):
    position = Position(reported.tell, 3)
    position.evaluated()
    position.evaluated()
    position.went_backward()
    position.stepped(1)
    position.evaluated()
    evaluations = [event for event in reported.events if event and event.phase is RunPhase.EVALUATION]
    assert [(event.step, event.done) for event in evaluations] == [(None, 1), (None, 2), (1, 1)]


def test_unknown_facts_of_a_newer_child_do_not_matter():
    line = json.dumps({"phase": "training", "step": 1, "colour": "red"})
    assert parse_event(line) == ProgressEvent(phase=RunPhase.TRAINING, step=1)


MOST_RAISES = 20


class LeftError(Exception):
    """The process would have ended with this code."""


class Timer:
    """Remembers what it was asked to do, and whether it was started."""

    made: list["Timer"]

    def __init__(self, interval: float, function: Any, args: tuple[Any, ...] = ()) -> None:
        self.interval, self.function, self.args = interval, function, args
        self.daemon, self.started_as_daemon = False, None
        Timer.made.append(self)

    def start(self) -> None:
        self.started_as_daemon = self.daemon


@pytest.fixture(autouse=True)
def _nobody_leaves(monkeypatch):
    def leave(code: int) -> None:
        raise LeftError(code)

    Timer.made = []
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(threading, "Timer", Timer)


def stopped(**facts: Any) -> Stopper:
    stopper = Stopper(**facts)
    with pytest.raises(StopProfiling):
        stopper.stop()
    return stopper


def test_nothing_happens_until_it_is_told_to_stop():
    stopper = Stopper()
    for _ in range(2 * MOST_RAISES):
        stopper.check()
    assert not stopper.stopping
    assert Timer.made == []


def test_a_script_that_swallows_it_too_often_loses_its_process():
    assert not issubclass(StopProfiling, Exception)  # an except clause of the script does not catch it
    stopper = stopped()
    assert stopper.stopping
    assert Timer.made[0].interval == 5.0
    for _ in range(MOST_RAISES - 1):
        with pytest.raises(StopProfiling):
            stopper.check()
    with pytest.raises(LeftError) as left:
        stopper.check()
    assert left.value.args == (0,)


def test_a_watchdog_ends_a_script_that_hangs():
    stopped(grace_s=2.5)
    (watchdog,) = Timer.made
    assert watchdog.interval == 2.5
    assert watchdog.started_as_daemon is True
    with pytest.raises(LeftError) as left:
        watchdog.function(*watchdog.args)
    assert left.value.args == (0,)
