"""Iterations of scripts that update their weights without a torch optimizer.

``p.data.add_(p.grad, alpha=-lr)``, ``with torch.no_grad(): w -= lr * w.grad``, and optimizers that are
classes of the script's own. An iteration then ends with the first backward pass after an update.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch

from ..protocol import Notice, Warned, notice
from ..replacing import replace

Result = TypeVar("Result")

# Backward passes that may precede an optimizer's first step: it exists, or no update was seen.
PATIENCE = 16


class ByHand:
    """Tells from backward passes and writes to weights where an iteration ends.

    Attributes:
        optimizer_exists: the script made a torch optimizer, which may yet step.
        num_spans: ends told so far, of the kind that is told now.
    """

    def __init__(self) -> None:
        self.optimizer_exists = False
        self.num_spans = 0
        self._has_updates = False

    def end_backward(self, *, updated: bool) -> bool:
        """Whether an iteration ends here; ``updated`` if weights changed since the last backward."""
        if updated and not self._has_updates:
            # What was counted so far were passes that accumulate gradients.
            self._has_updates, self.num_spans = True, 0
        ends = updated or not (self._has_updates or self.optimizer_exists)
        self.num_spans += ends
        return ends

    def is_certain(self, spans_wanted: int) -> bool:
        """Whether enough was seen to say that no optimizer will step."""
        sure = self._has_updates and not self.optimizer_exists
        return self.num_spans >= (spans_wanted if sure else PATIENCE)

    @property
    def warning(self) -> Notice:
        """How the iteration was found."""
        return notice(Warned.NO_STEP, has_updates=self._has_updates)


def watch_backward(begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Call ``begin`` and ``end`` around each outermost use of the autograd engine."""
    depth = 0

    def watched(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def run(*args: object, **kwargs: object) -> Result:
            nonlocal depth
            if depth == 0:
                begin()
            depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                depth -= 1
            if depth == 0:
                end()
            return result

        return run

    autograd = torch.autograd
    replace(autograd, backward=watched(autograd.backward), grad=watched(autograd.grad))
