"""Parameters of which DeepSpeed's ZeRO-3 leaves each rank a part, told from the marks that it puts on them.

The parameter itself is empty, or all of it for as long as it is gathered. Its gradients are in a buffer of
their own, and not where torch keeps them: there is a piece of what is being exchanged.
"""

from __future__ import annotations

import torch

_MARK, _PART = "ds_id", "ds_tensor"


def part_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """What this rank keeps of the parameter; None of one that is not partitioned."""
    part = getattr(tensor, _PART, None)
    return part if isinstance(part, torch.Tensor) else None


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The parameter's gradient, where torch keeps it."""
    return None if hasattr(tensor, _MARK) else tensor.grad
