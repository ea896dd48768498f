"""GradScaler always makes the optimizer's step.

It reads from the GPU whether gradients overflowed and skips the step if so. A made-up value is not
zero, so every step would be skipped and the script would seem to have no training loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001
    """Replace the decision, not the read, which costs time on a GPU."""

    def step(
        scaler: object,  # noqa: ARG001
        optimizer: torch.optim.Optimizer,
        state: dict[str, dict[object, torch.Tensor]],
        *args: object,
        **kwargs: object,
    ) -> object:
        for infinite in state["found_inf_per_device"].values():
            infinite.item()
        take: Callable[..., object] = optimizer.step
        return take(*args, **kwargs)

    replace(torch.amp.GradScaler, _maybe_opt_step=step)
