"""The child tells where it is, a few times a second at most; see tests/security for what a script forges."""

import json

import pytest

from advisor.payload.progress import Position, Teller
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
