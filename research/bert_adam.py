"""Adam as BERT's fine-tuning ran it in FP32: tensor by tensor, each gradient clipped by itself.

Whether a gradient is too long is asked on the host, so each of some 400 tensors waits for the GPU: a step of
BERT-large takes 150 ms longer, whatever its batch. The norm of the one norm, the limit over it and whether
that is below 1 are what torch's ``clip_grad_norm_`` computed until version 1.8.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

_MOST_NORM, _FIRST, _SECOND, _EPSILON, _DECAY = 1.0, 0.9, 0.999, 1e-6, 0.01


class TensorByTensor(torch.optim.Optimizer):
    """One pass over the tensors; moments are not corrected for their start."""

    def __init__(self, parameters: Iterable[torch.Tensor], lr: float = 3e-5) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override] # noqa: ARG002 - torch's
        """Move every weight."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, weight.grad, group["lr"])

    def _move(self, weight: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        state = self.state[weight]
        if not state:
            state["first"], state["second"] = torch.zeros_like(weight), torch.zeros_like(weight)
        first, second = state["first"], state["second"]
        share = _MOST_NORM / (torch.stack([gradient.norm()]).norm() + 1e-6)
        if bool(share < 1):
            gradient.mul_(share)
        first.mul_(_FIRST).add_(gradient, alpha=1 - _FIRST)
        second.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
        update = first / (second.sqrt() + _EPSILON)
        update += _DECAY * weight
        weight.add_(-(rate * update))
