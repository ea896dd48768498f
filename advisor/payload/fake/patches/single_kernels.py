"""Operators that CUDA has one kernel for and other devices take apart: RMS norm, gradients of SiLU and Mish.

A build of torch without CUDA takes them apart above the dispatch mode, since it knows no kernel of theirs for
CUDA tensors: seven kernels and six temporary tensors in place of one for an RMS norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...composite import ONE_KERNEL

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Tell torch of the kernels, which the mode never lets it call; the library object outlives the process.

    Where there is a kernel, torch's formula of its gradient holds in place of that of the parts.
    """
    session.single_kernels_library = library = torch.library.Library("aten", "IMPL")
    for name in sorted(ONE_KERNEL):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CUDA"):
            library.impl(name, _unreachable, "CUDA")


def _unreachable(*_: object, **__: object) -> object:
    raise AssertionError("a CUDA kernel was called on the pretended GPU")
