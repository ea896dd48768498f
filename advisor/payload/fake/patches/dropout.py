"""Dropout by its fused kernel, as on CUDA.

C++ chooses ``native_dropout`` for CUDA tensors only; ours would get three kernels and a mask of floats
in place of bytes, so more memory.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap ``torch.nn.functional.dropout`` and ``torch.dropout``."""
    functional = torch.nn.functional
    original, plain = functional.dropout, torch.dropout

    @functools.wraps(original)
    def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> object:  # noqa: A002
        if session.is_fake(input) and training and not inplace and 0 < p < 1:
            return torch.native_dropout(input, p, True)[0]
        return original(input, p, training, inplace)

    @functools.wraps(plain)
    def torch_dropout(input: torch.Tensor, p: float, train: bool) -> object:  # noqa: A002
        if session.is_fake(input) and train and 0 < p < 1:
            return torch.native_dropout(input, p, True)[0]
        return plain(input, p, train)

    replace(functional, dropout=dropout)
    replace(torch, dropout=torch_dropout)
