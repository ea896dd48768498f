"""GradScaler always makes the optimizer's step.

It reads from the GPU whether gradients overflowed and skips the step if so. A made-up value is not
zero, so every step would be skipped and the script would seem to have no training loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001
    """Replace the decision, not the read, which costs time on a GPU."""

    def step(scaler: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG001
        for found in state["found_inf_per_device"].values():
            found.item()
        return optimizer.step(*args, **kwargs)

    torch.amp.GradScaler._maybe_opt_step = step
