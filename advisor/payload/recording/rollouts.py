"""Forward passes between phases of updates, which no recorded iteration holds.

Reinforcement learning plays with the policy before it learns from what it saw, and language models
generate what they are tuned on; an iteration is from one step of an optimizer to its next.
"""

from __future__ import annotations

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

    def end_span(self) -> str | None:
        """A warning where this iteration lacks what came before the first step."""
        if self._before_first_step is None:
            self._before_first_step = self._in_span
        if self._before_first_step - self._in_span <= MOST_IGNORED:
            return None
        return (
            f"{self._before_first_step:,} forward passes without gradients ran before the optimizer's first"
            " step. Work between phases of updates (rollouts, generation, evaluation) is not part of the"
            " recorded iteration: `iterations` counts optimizer steps, and what comes between them is to be"
            " added. advisor.profile.profile_callable profiles it as a function"
        )
