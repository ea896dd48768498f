"""Limits, price and the first steps fail apart; what cannot be compared is said once."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import InputError
from advisor.core.values import Interval
from advisor.receipt import guard as guarding
from advisor.receipt.guard import Canary, Phase
from advisor.service import watching
from advisor.service.plan_facts import Place
from advisor.service.watching import Watch, WatchRequest, expected_of
from tests.listening import Heard
from tests.team import make_entry
from tests.unit.receipt.test_canary import EXPECTED

STEPS = {
    "version": 1,
    "pid": 1,
    "rank": 0,
    "num_steps": 100,
    "span_s": 0.0,
    "blocks": [[230, 99]],
    "failure": None,
}


def fails(*_: object, **__: object) -> Any:
    raise RuntimeError("a fault of ours")


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """Signals in place of processes that get them: none is alive."""
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(guarding, "processes", dict)
    monkeypatch.setattr(os, "kill", lambda *one: signals.append(one))
    return signals


@pytest.fixture
def folder(tmp_path):
    """A command made 100 steps of ten seconds each."""
    (tmp_path / "1.json").write_text(json.dumps(STEPS))
    return tmp_path


def watch(folder: Path, heard: Heard, expected: Any = lambda: EXPECTED, **facts: Any) -> Watch:
    request = WatchRequest(**({"max_s": 1e5, "canary": Canary.STOP} | facts))
    return Watch(
        request, grace_s=100.0, usd_per_h=lambda: 1.0, expected=expected, folder=folder, listener=heard
    )


def test_first_steps_that_cannot_be_read_leave_the_limits(folder):
    """It is said once, and they are compared when they can be."""
    heard, tells = Heard(), [fails, fails, lambda: EXPECTED]
    one = watch(folder, heard, lambda: tells.pop(0)())
    for s in (10.0, 20.0):
        one.look(s, 1)
    (said,) = heard.warnings
    assert "its first steps cannot be read now" in said
    one.look(30.0, 1)
    one.look(31.0, 1)
    assert one.guard.stopped_by == "its canary: steps were slower than predicted"


def test_limits_that_cannot_be_judged_are_judged_at_the_next_look(folder, sent, monkeypatch):
    """What fails is the list of processes, which a stop needs; the first steps are compared meanwhile."""
    monkeypatch.setattr(guarding, "processes", fails)
    heard = Heard()
    one = watch(folder, heard, max_s=10.0, canary=Canary.GO_ON)
    one.look(11.0, 7)
    one.look(12.0, 7)
    (said,) = heard.warnings
    assert "its limits cannot be read now" in said
    assert any("slower than predicted" in line for line in heard.notes)
    monkeypatch.setattr(guarding, "processes", dict)
    one.look(13.0, 7)
    assert [pid for pid, _ in sent] == [7]
    assert one.guard.phase is Phase.KILLED


def test_standard_error_that_is_gone_ends_nothing(folder, monkeypatch):
    class Gone(Heard):
        def warn(self, messages: Any) -> None:  # noqa: ARG002
            raise BrokenPipeError

    monkeypatch.setattr(guarding, "processes", fails)
    watch(folder, Gone(), max_s=10.0).look(11.0, 7)


def here(gpu: str | None, num_gpus: int | None) -> Place:
    return Place(provider="lab", gpu=gpu, num_gpus=num_gpus, market=None)


ADVISED = make_entry(gpu="L4", num_gpus=16, iteration_s=Interval(p10=1.0, p50=2.0, p90=3.0))


@pytest.mark.parametrize(("num_gpus", "num_nodes"), [(16, 1), (16, 2), (8, 2)])
def test_steps_are_compared_with_those_of_all_machines_together(num_gpus, num_nodes):
    """What one machine sees of a training on two is a step of both."""
    assert expected_of(ADVISED, here("L4", num_gpus), num_nodes).step_s == ADVISED.iteration_s


@pytest.mark.parametrize(
    ("place", "num_nodes", "words"),
    [
        (here("T4", 16), 1, "is about 16 x L4, and this machine has 16 x T4:"),
        (here("L4", 8), 1, "is about 16 x L4, and this machine has 8 x L4:"),
        (here("L4", 4), 2, "this machine has 4 x L4 on each of 2 nodes:"),
        (here(None, None), 1, "no GPU is found here"),
    ],
)
def test_other_gpus_than_predicted_are_named_once(place, num_nodes, words, folder):
    with pytest.raises(InputError, match=words):
        expected_of(ADVISED, place, num_nodes)
    heard = Heard()
    one = watch(folder, heard, lambda: expected_of(ADVISED, place, num_nodes))
    for s in (10.0, 20.0, 30.0):
        one.look(s, 1)
    (said,) = heard.notes
    assert words in said
    assert heard.warnings == []


def test_an_interval_without_an_end_stops_nothing_and_says_why(folder):
    """As of several nodes whose network nobody named."""
    open_ended = replace(EXPECTED, step_s=Interval(p10=0.9, p50=1.0, p90=math.inf))
    heard = Heard()
    one = watch(folder, heard, lambda: open_ended)
    for s in (10.0, 20.0):
        one.look(s, 1)
    (said,) = heard.notes
    assert said.endswith(
        "slower than predicted: how slow they may be was not known, so nothing follows from it"
    )


def test_nothing_predicted_is_nothing_to_compare():
    with pytest.raises(InputError, match="nothing was predicted for a step"):
        expected_of(None, here("L4", 1), 1)


def test_a_terminal_that_went_away_is_no_fault_of_the_limits(folder, monkeypatch):
    heard = Heard()
    one = watch(folder, heard, canary=Canary.ASK)
    read, write = os.pipe()
    monkeypatch.setattr(watching._Question, "at_terminal", lambda s: watching._Question(read, s))
    one.look(10.0, 1)
    for handle in (read, write):
        os.close(handle)
    for s in (11.0, 12.0, 99_999.0):
        one.look(s, 1)
    assert sum("an answer at the terminal cannot be read" in line for line in heard.warnings) == 1
    assert one.guard.phase is Phase.TERMINATED
