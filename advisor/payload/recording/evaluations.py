"""Forward passes between two steps that try the model instead of training it.

Those over batches of a DataLoader that were taken without gradients belong to no iteration. Others may: a
policy plays, a model labels its own batches. So they are counted and named. So are those of steps before: a
validation at intervals seldom falls into the iteration that is recorded.
"""

from __future__ import annotations

import torch

from ..protocol import Notice, Warned, notice


class Evaluations:
    """Counts what an iteration holds besides training.

    Attributes:
        num_passes: forward passes without gradients, of models in evaluation mode, that stay in it.
    """

    def __init__(self) -> None:
        self._num_between: int | None = None  # in spans before, but for what comes before the first step
        self.start_span()

    def start_span(self) -> None:
        """Begin a new iteration."""
        self.num_passes = self._num_calls = 0

    def add(self, model: torch.nn.Module, num_calls: int) -> None:
        """A model was asked without gradients and ran so many operators."""
        if not model.training and any(weight.requires_grad for weight in model.parameters()):
            self.num_passes += 1
            self._num_calls += num_calls

    def end_span(self, *, num_left_out: int, num_calls: int) -> list[Notice]:
        """What to know of an iteration with so many calls, of whose batches so many were left out."""
        num_here, num_between = num_left_out + self.num_passes, self._num_between
        # What runs before the first step may do so once.
        self._num_between = 0 if num_between is None else num_between + num_here
        warnings = []
        if num_between and not num_here:
            warnings.append(notice(Warned.EVALUATION_BETWEEN, num_passes=num_between))
        if num_left_out:
            warnings.append(notice(Warned.EVALUATION_LEFT_OUT, num_batches=num_left_out))
        if self.num_passes:
            inside = {"num_passes": self.num_passes, "num_calls": self._num_calls}
            warnings.append(notice(Warned.EVALUATION_INSIDE, **inside, num_calls_of_all=num_calls))
        return warnings
