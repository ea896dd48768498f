"""Forward passes between phases of updates, which no recorded iteration holds.

Reinforcement learning plays with the policy before it learns from what it saw, and language models
generate what they are tuned on; an iteration is from one step of an optimizer to its next.
"""

from __future__ import annotations

from ..protocol import Notice, Warned, notice

# A dry run for lazy modules or for a summary of the model takes a few passes.
MOST_IGNORED = 10


class Rollouts:
    """Counts forward passes without gradients from the making of the optimizer to its first step."""

    def __init__(self) -> None:
        self._in_span = 0
        self._before_first_step: int | None = None

    def add(self) -> None:
        """A model was asked without gradients."""
        self._in_span += 1

    def start_span(self) -> None:
        """Begin a new iteration, or what comes before the first."""
        self._in_span = 0

    def end_span(self) -> Notice | None:
        """A warning where this iteration lacks what came before the first step."""
        if self._before_first_step is None:
            self._before_first_step = self._in_span
        if self._before_first_step - self._in_span <= MOST_IGNORED:
            return None
        return notice(Warned.ROLLOUTS_LEFT_OUT, num_passes=self._before_first_step)
