"""Random initial weights are not drawn.

The values do not matter, drawing them takes seconds, and memory that nobody wrote to costs nothing.
Constants are still filled in: scripts may use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from advisor.payload.session import Session

_RANDOM = (
    "uniform_", "normal_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_",
    "xavier_normal_", "orthogonal_", "_no_grad_uniform_", "_no_grad_normal_",
    "_no_grad_trunc_normal_",
)  # fmt: skip


def install(session: Session) -> None:  # noqa: ARG001
    """Replace the random fillers of ``torch.nn.init``."""
    for name in _RANDOM:
        # A function for each name: torch._dynamo refuses to load if two of torch's are the same.
        if hasattr(torch.nn.init, name):
            setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)
