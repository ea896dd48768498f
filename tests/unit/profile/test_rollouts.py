"""What is said of forward passes that no recorded iteration holds."""

import pytest

from advisor.payload.recording.iteration import MOST_IGNORED, Rollouts
from tests.findings import of_child


def are_rollouts(*passes: int) -> list[bool]:
    """For spans with so many passes without gradients, whether each is told to lack some."""
    rollouts, ends = Rollouts(), []
    for count in passes:
        rollouts.start_span()
        for _ in range(count):
            rollouts.add()
        ends.append(rollouts.end_span() is not None)
    return ends


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ((1025, 0, 0), [False, True, True]),
        # One update a rollout: every iteration holds its own.
        ((128, 128, 128), [False, False, False]),
        # A teacher is asked in every iteration, a dry run comes before the first.
        ((2, 1, 1), [False, False, False]),
        ((MOST_IGNORED, 0, 0), [False, False, False]),
        ((0, 40, 0), [False, False, False]),
    ],
)
def test_what_the_iteration_lacks_is_told(passes, expected):
    assert are_rollouts(*passes) == expected


def test_the_warning_says_how_many_and_what_to_do():
    rollouts = Rollouts()
    for _ in range(1025):
        rollouts.add()
    rollouts.end_span()
    rollouts.start_span()
    (warning,) = of_child([rollouts.end_span()])
    for words in (
        "1,025 forward passes",
        "rollouts, generation, evaluation",
        "`iterations` counts optimizer steps",
    ):
        assert words in warning
