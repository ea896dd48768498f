"""Gradients of SiLU and Mish by their one kernel, as on CUDA.

A build of torch without CUDA takes them apart above the dispatch mode, since it knows no kernel of theirs for
CUDA tensors: seven kernels and six temporary tensors in place of one kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...composite import ONE_KERNEL

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Let them pass to the mode; the library object must outlive the process."""
    session.activations_library = library = torch.library.Library("aten", "IMPL")
    for name in sorted(ONE_KERNEL):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CUDA"):
            library.impl(name, torch.library.fallthrough_kernel, "AutogradCUDA")
