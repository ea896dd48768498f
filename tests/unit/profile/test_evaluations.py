"""What an iteration holds besides training, and what is said of it."""

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.recording.iteration import Evaluations  # noqa: E402 - needs torch
from tests.findings import of_child  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("training", "learns", "expected"), [(False, True, 1), (True, True, 0), (False, False, 0)]
)
def test_a_model_that_learns_is_evaluated_in_evaluation_mode(training, learns, expected):
    model = torch.nn.Linear(2, 2).train(training).requires_grad_(learns)
    evaluations = Evaluations()
    evaluations.add(model, 5)
    assert evaluations.num_passes == expected


def test_passes_that_stay_are_told_with_figures():
    evaluations, model = Evaluations(), torch.nn.Linear(2, 2).eval()
    evaluations.add(model, 5)
    evaluations.add(model, 7)
    (warning,) = of_child(evaluations.end_span(num_left_out=0, num_calls=1500))
    assert "holds 2 forward passes" in warning
    assert "12 of its 1,500 operator calls" in warning
    evaluations.start_span()
    assert evaluations.end_span(num_left_out=0, num_calls=1500) == []


def test_what_was_left_out_is_told_with_figures():
    (warning,) = of_child(Evaluations().end_span(num_left_out=1000, num_calls=10))
    assert "an evaluation of 1,000 batches without gradients" in warning
    assert "the trace is without it" in warning


def spans(*passes: tuple[int, int]) -> list[list[str]]:
    """What is said of each span, of so many passes that stay in it and batches that were left out."""
    evaluations, model, said = Evaluations(), torch.nn.Linear(2, 2).eval(), []
    for num_passes, num_left_out in passes:
        for _ in range(num_passes):
            evaluations.add(model, 1)
        said.append(of_child(evaluations.end_span(num_left_out=num_left_out, num_calls=10)))
        evaluations.start_span()
    return said


@pytest.mark.parametrize("between", [(3, 0), (0, 3), (1, 2)])
def test_a_validation_between_earlier_steps_is_told(between):
    (warning,) = spans((0, 0), between, (0, 0))[-1]
    assert "(forward passes: 3): the trace is without them" in warning
    assert "comes on top" in warning


def test_what_ran_before_the_first_step_may_have_run_once():
    assert spans((3, 4), (0, 0), (0, 0)) == [spans((3, 4))[0], [], []]


def test_a_validation_of_the_iteration_itself_is_told_alone():
    assert [len(warnings) for warnings in spans((0, 0), (2, 0), (2, 0))] == [0, 1, 1]
    assert "holds 2 forward passes" in spans((0, 0), (2, 0), (2, 0))[-1][0]
