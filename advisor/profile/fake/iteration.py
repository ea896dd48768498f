"""Where an iteration begins and ends, told from the optimizers' steps.

One iteration is the span between two steps of the optimizer that stepped first: with gradient
accumulation it holds several forward and backward passes, with a GAN the other network's step too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

if TYPE_CHECKING:
    from .session import Session

# The first span holds the set-up, the second what loops log at iteration 0; the third is steady, unless
# it ends an epoch with fewer samples than the others. Where batches differ in size we stop looking.
SPANS_WANTED = 3
MOST_SPANS = 6


class Iterations:
    """Cuts the run into spans and keeps the newest complete one.

    Attributes:
        num_spans: complete spans so far.
        last: the newest complete span, as it goes into the result.
        is_steady: it is past the start and holds as many samples as any span so far.
    """

    def __init__(self, session: Session, on_span: Callable[[int], None]) -> None:
        self._session = session
        self._on_span = on_span
        self._first: Any = None
        self._optimizers: dict[int, Any] = {}
        self._models: dict[int, Any] = {}
        self._depth = 0
        self.num_spans = 0
        self.last: dict[str, Any] | None = None
        self.is_steady = False
        self._most_samples = 0

    def install(self) -> None:
        """Hook into every optimizer and module of the process."""
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        modules = torch.nn.modules.module
        modules.register_module_forward_pre_hook(self._enter_module)
        modules.register_module_forward_hook(self._leave_module, always_call=True)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        session = self._session
        session.stopper.check()
        session.recorder.phase = "optimizer"
        self._first = self._first or optimizer
        self._optimizers[id(optimizer)] = optimizer
        for tensor in _parameters(optimizer):
            if tensor.grad is not None:
                _tag(session, tensor.grad, "gradient")

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        self._session.recorder.phase = "forward"
        if optimizer is self._first:
            self._close_span()

    def _close_span(self) -> None:
        session = self._session
        self._tag_owned()
        self.num_spans += 1
        self.last = {
            "operators": session.recorder.operators(),
            "num_backward_passes": session.recorder.num_backward_passes,
            "memory": session.memory.usage(),
            "collectives": session.collectives.entries(),
            "loading": session.loading.usage(),
            "amp_dtype": session.amp_dtype,
            "num_optimizers": len(self._optimizers),
        }
        samples = (self.last["loading"] or {}).get("samples") or 0
        self._most_samples = max(self._most_samples, samples)
        is_full = samples == self._most_samples or self.num_spans >= MOST_SPANS
        self.is_steady = is_full and self.num_spans >= SPANS_WANTED
        self.start_span()
        self._on_span(self.num_spans)

    def start_span(self) -> None:
        """Forget what belongs to the span before."""
        session = self._session
        session.recorder.start_span()
        session.memory.start_span()
        session.collectives.start_span()
        session.loading.start_span()
        session.amp_dtype = None

    def _tag_owned(self) -> None:
        session = self._session
        for optimizer in self._optimizers.values():
            for tensor in _parameters(optimizer):
                _tag(session, tensor, "parameter")
            for state in optimizer.state.values():
                for value in state.values() if isinstance(state, dict) else ():
                    _tag(session, value, "optimizer")
        # Frozen parameters belong to no optimizer.
        for model in self._models.values():
            for tensor in model.parameters():
                _tag(session, tensor, "parameter")

    def _enter_module(self, module: Any, args: Any) -> None:  # noqa: ARG002
        if self._depth == 0:
            self._models[id(module)] = module
        self._depth += 1

    def _leave_module(self, module: Any, args: Any, result: Any) -> None:  # noqa: ARG002
        self._depth = max(0, self._depth - 1)


def _parameters(optimizer: Any) -> list[Any]:
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def _tag(session: Session, value: Any, kind: str) -> None:
    if isinstance(value, torch.Tensor) and value.is_cuda and value.layout is torch.strided:
        session.memory.tag(value, kind)
