"""Optimizers work on lists of tensors, as they do on CUDA.

The foreach kernels are taken only if every parameter's type is on a list; fake ones are not on it, and
each parameter would be updated by its own kernels. Lists are also grouped by the device that C++ sees,
which is meta, where gradient clipping finds no foreach kernels.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001
    """Put FakeTensor on both copies of the list, and CUDA into the groups."""
    # torch.optim hides its submodules, so they are not reached as attributes.
    for name in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
        supported = sys.modules[name]._foreach_supported_types
        if FakeTensor not in supported:
            supported.append(FakeTensor)
    original = torch._C._group_tensors_by_device_and_dtype

    def group(*args: Any, **kwargs: Any) -> object:
        groups = original(*args, **kwargs)
        return {(_visible(device), dtype): group for (device, dtype), group in groups.items()}

    replace(torch._C, _group_tensors_by_device_and_dtype=group)


def _visible(device: torch.device) -> torch.device:
    return torch.device("cuda", 0) if device.type == "meta" else device
