"""Batch normalisation by cuDNN's kernel.

C++ chooses cuDNN for CUDA tensors only and takes ours for others, so a trace would name an operator that
a GPU does not run. The conditions are those of ``aten/src/ATen/native/Normalization.cpp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session

_MIN_EPSILON = 1e-5
_MOST_SAMPLES = {True: 880_801, False: 65_535}  # by training
_MOST_ELEMENTS = 2**31 - 1


def install(session: Session) -> None:
    """Wrap ``torch.batch_norm``."""
    original = torch.batch_norm

    def batch_norm(
        input: torch.Tensor,  # noqa: A002 - torch's own name
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
        cudnn_enabled: bool,
    ) -> object:
        has_statistics = (running_mean is None) == (running_var is None) and (
            training or running_mean is not None
        )
        if (
            cudnn_enabled
            and has_statistics
            and eps >= _MIN_EPSILON
            and session.is_fake(input)
            and _cudnn_takes(input, weight, bias, training)
        ):
            return torch.ops.aten.cudnn_batch_norm(
                input, weight, bias, running_mean, running_var, training, momentum, eps
            )[0]
        return original(
            input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
        )

    replace(torch, batch_norm=batch_norm)


def _cudnn_takes(
    source: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, training: bool
) -> bool:
    if weight is None or bias is None or torch.bfloat16 in (source.dtype, weight.dtype):
        return False
    if source.dtype is torch.float16 and weight.dtype is not torch.float32:
        return False
    fits = source.size(0) <= _MOST_SAMPLES[training] and source.numel() < _MOST_ELEMENTS
    return bool(source.dim() >= 3 and fits)
