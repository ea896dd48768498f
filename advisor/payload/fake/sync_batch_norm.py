"""Shapes of SyncBatchNorm's operators, which have kernels for CUDA alone and no rule for fake tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch._ops import OpOverload

    from .making import Maker

aten = torch.ops.aten


def _stats(mode: Maker, data: torch.Tensor, *_: object) -> object:
    """Mean and inverse deviation of each channel, in the precision that sums have."""
    dtype = torch.float32 if data.dtype in (torch.float16, torch.bfloat16) else data.dtype
    return tuple(mode.empty((data.shape[1],), dtype) for _ in range(2))


def _elements(mode: Maker, data: torch.Tensor, *_: object) -> object:
    return mode.empty(data.shape, data.dtype, data.stride())


def _backward_sums(
    mode: Maker,
    gradient: torch.Tensor,
    data: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: torch.Tensor | None,
    *wanted: bool,
) -> object:
    """Two sums for all ranks, then the gradients of weight and bias, each where it is wanted."""
    for_input, for_weight, for_bias = wanted
    of_mean = mode.empty(mean.shape, mean.dtype) if for_input else None
    of_product = mode.empty(invstd.shape, invstd.dtype) if for_input else None
    like = gradient if weight is None else weight
    parameters = [
        mode.empty((data.shape[1],), like.dtype) if needed else None for needed in (for_weight, for_bias)
    ]
    return of_mean, of_product, *parameters


SYNC_BATCH_NORM_RULES: dict[OpOverload, Callable[..., object]] = {
    aten.batch_norm_stats.default: _stats,
    aten.batch_norm_gather_stats_with_counts.default: _stats,
    aten.batch_norm_elemt.default: _elements,
    aten.batch_norm_backward_reduce.default: _backward_sums,
    aten.batch_norm_backward_elemt.default: _elements,
}
