"""Limits, price and the first steps fail apart; what cannot be compared is said once."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.config.settings import ChoiceSettings
from advisor.core.errors import InputError
from advisor.core.values import Interval
from advisor.receipt import guard as guarding
from advisor.receipt.guard import Canary, Expected, GuardPhase, pace_of
from advisor.service import watching
from advisor.service.plan_facts import Place
from advisor.service.watching import Watch, WatchRequest, expected_of, verdict_of, words_of_verdict
from advisor.store.ledger import Alternative
from tests.listening import Heard
from tests.team import make_entry, make_offered
from tests.unit.receipt.test_guard import EXPECTED

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
    assert one.guard.phase is GuardPhase.KILLED


def test_standard_error_that_is_gone_ends_nothing(folder, monkeypatch):
    class Gone(Heard):
        def warn(self, messages: Any) -> None:  # noqa: ARG002
            raise BrokenPipeError

    monkeypatch.setattr(guarding, "processes", fails)
    watch(folder, Gone(), max_s=10.0).look(11.0, 7)


# A job of an hour on one A10G at 2 dollars an hour takes three, as its first steps show.
STARTED = make_entry(
    usd_per_h=2.0,
    num_iterations=3600,
    iteration_s=Interval(p10=0.9, p50=1.0, p90=1.2),
    alternatives=(
        Alternative(gpu="A10G", num_gpus=2, iteration_p50_s=0.5, train_p50_s=1800.0, train_p90_s=2000.0),
        Alternative(gpu="L4", num_gpus=8, iteration_p50_s=1.0, train_p50_s=3600.0, train_p90_s=4000.0),
    ),
)
PACE = pace_of(
    Expected(
        step_s=Interval(p10=0.9, p50=1.0, p90=1.2),
        time_s=STARTED.time_s,
        cost_usd=STARTED.cost_usd,
        num_steps=3600,
        usd_per_h=2.0,
    ),
    Interval(p10=2.9, p50=3.0, p90=3.1),
    100,
)
TWINS = make_offered("twins", 0.6, 3.0, gpu="A10G", num_gpus=2, usd_per_h=4.0, num_changes=0)
EIGHT = make_offered("eight", 1.1, 4.4, usd_per_h=4.0, num_changes=0)


@pytest.mark.parametrize(
    ("facts", "plan_id", "hours", "usd"),
    [
        # Three times as long on other options of the GPU, and 3 to the power of 0.2 on another.
        ({"options": (TWINS,)}, "twins", 0.6 + 0.5 * 2, 3.0 + 4.0 * 0.5 * 2),
        ({"options": (TWINS, EIGHT)}, "eight", 1.1 + 3**0.2 - 1, 4.4 + 4.0 * (3**0.2 - 1)),
        # Over the budget, too late, work that nobody counted or that costs more, and a price not known.
        ({"options": (EIGHT,), "budget_usd": 5.0}, None, 0, 0),
        ({"options": (EIGHT,), "deadline_s": 4000.0}, None, 0, 0),
        ({"options": (replace(EIGHT, num_changes=None),)}, None, 0, 0),
        ({"options": (replace(EIGHT, num_changes=1),)}, None, 0, 0),
        ({"options": (replace(EIGHT, usd_per_h=None),)}, None, 0, 0),
        ({"options": (replace(EIGHT, cost_p50_usd=9.0),)}, None, 0, 0),
        ({"options": (replace(EIGHT, plan_id=STARTED.plan_id),)}, None, 0, 0),
    ],
)
def test_what_is_better_now_is_the_answer_corrected_by_the_first_steps(facts, plan_id, hours, usd):
    verdict = verdict_of(replace(STARTED, **facts), PACE, ChoiceSettings())
    assert (verdict.left_s, verdict.left_usd) == (3500 * 3.0, pytest.approx(3500 * 3.0 / 1800))
    if plan_id is None:
        assert verdict.better is None
        assert words_of_verdict(verdict).startswith(
            "nothing of the answer is better now: going on takes 2 h 55"
        )
        return
    assert verdict.better.plan_id == plan_id
    assert verdict.better.time_s.p50 == pytest.approx(3600 * hours)
    assert verdict.better.cost_usd.p50 == pytest.approx(usd)
    assert words_of_verdict(verdict).startswith(f"better now: {plan_id}, begun anew ")


@pytest.mark.parametrize("lacks", [{"options": ()}, {"options": (EIGHT,), "usd_per_h": None}])
def test_nothing_is_said_where_the_answer_is_not_known(lacks):
    pace = replace(PACE, expected=replace(PACE.expected, usd_per_h=lacks.get("usd_per_h", 2.0)))
    assert verdict_of(replace(STARTED, **lacks), pace, ChoiceSettings()) is None


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
    assert one.guard.phase is GuardPhase.TERMINATED
