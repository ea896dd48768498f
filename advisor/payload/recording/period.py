"""Whose steps bound an iteration where a script has several optimizers."""

from __future__ import annotations

import weakref
from collections import Counter

import torch

# A Wasserstein GAN's critic steps 5 times, at times 10, before the generator steps once.
PATIENCE = 32


class Period:
    """Follows the optimizers' steps; the one that steps least often bounds the iteration.

    Attributes:
        optimizers: those alive, by id; a script may make more than it uses.
        num_steps: how often the bounding optimizer stepped since it is the bounding one.
    """

    def __init__(self) -> None:
        self.optimizers: weakref.WeakValueDictionary[int, torch.optim.Optimizer] = (
            weakref.WeakValueDictionary()
        )
        self.num_steps = 0
        self._bound: int | None = None
        self._last_step: dict[int, int] = {}
        self._in_span: Counter[int] = Counter()
        self._open: list[int] = []

    @property
    def has_begun(self) -> bool:
        """Whether any optimizer stepped."""
        return self._bound is not None

    def is_bound_by(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether this optimizer's steps bound the iteration as far as is known."""
        return id(optimizer) == self._bound

    def begin_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer begins to step; of nested ones the outermost begins first."""
        key = id(optimizer)
        self.optimizers[key] = optimizer
        if self._bound is None:
            self._bound = key
        if key in self._open:  # its last step ended in an error
            del self._open[self._open.index(key) :]
        self._open.append(key)

    def leave_step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether the step that is over was a part of another one, as that of a ZeroRedundancyOptimizer's."""
        if id(optimizer) in self._open:
            del self._open[self._open.index(id(optimizer)) :]
        return bool(self._open)

    def end_step(self, optimizer: torch.optim.Optimizer) -> tuple[bool, bool]:
        """Whether this step ends an iteration, and whether another optimizer than before bounds it."""
        key = id(optimizer)
        self._in_span[key] += 1
        moved = key != self._bound and self.num_steps - self._last_step.get(key, 0) > 1
        if moved:
            self._bound, self.num_steps = key, 0
            self._last_step = dict.fromkeys(self._last_step, 1)
        if key == self._bound:
            self.num_steps += 1
        self._last_step[key] = self.num_steps
        return key == self._bound, moved

    def missing(self) -> list[torch.optim.Optimizer]:
        """Optimizers without a step in this span, whose weights no other one stepped."""
        stepped = [optimizer for key, optimizer in self.optimizers.items() if key in self._in_span]
        trained = {id(tensor) for optimizer in stepped for tensor in parameters(optimizer)}
        return [
            optimizer
            for optimizer in self.optimizers.values()
            if any(id(tensor) not in trained for tensor in parameters(optimizer) if tensor.requires_grad)
        ]

    @property
    def num_in_span(self) -> int:
        """How many optimizers stepped in this span."""
        return len(self._in_span)

    @property
    def most_steps(self) -> int:
        """The steps in this span of the optimizer that stepped most often in it."""
        return max(self._in_span.values(), default=0)

    def start_span(self) -> None:
        """Begin a new iteration."""
        self._in_span = Counter()


def parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All tensors that an optimizer steps."""
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]
