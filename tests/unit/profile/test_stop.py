"""The end of a script that swallows exceptions; nobody really leaves the process here."""

import os
import threading
from typing import Any

import pytest

from advisor.payload.progress import Stopper, StopProfiling

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
