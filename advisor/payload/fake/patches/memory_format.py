"""Convolutions keep ``channels_last``, as cuDNN does.

FakeTensor asks C++ which library computes a convolution and in which memory format that library answers. A
build of torch without CUDA knows no cuDNN and answers that all is contiguous, so after the first convolution
nothing of a script's ``channels_last`` would be left. The conditions are those of
``cudnn_conv_suggest_memory_format`` in ``aten/src/ATen/native/ConvUtils.h``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Replace what FakeTensor asks."""
    from torch._prims_common import suggest_memory_format

    original = torch._C._conv_determine_backend_memory_format

    def memory_format(source: torch.Tensor, weight: torch.Tensor, *backend: Any) -> torch.memory_format:
        if not session.is_fake(source):
            return original(source, weight, *backend)
        asked = {suggest_memory_format(source), suggest_memory_format(weight)} - {torch.contiguous_format}
        # cuDNN has no such kernels in float64.
        if torch.float64 in (source.dtype, weight.dtype) or not asked:
            return torch.contiguous_format
        return asked.pop()

    replace(torch._C, _conv_determine_backend_memory_format=memory_format)
