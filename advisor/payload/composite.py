"""Composite operators that reach a dispatch mode whole.

torch takes ``conv2d``, ``linear`` or ``matmul`` apart above the modes, but not in inference mode, nor below
autograd, as in the kernels of a library's own operators. What a GPU runs are the parts.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode

    from .dispatch import Args, Kwargs

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@functools.cache
def is_composite(func: OpOverload) -> bool:
    """Whether the operator consists of others on every device."""
    # Not _can_decompose: Python also knows decompositions of operators that are one kernel.
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE))


def take_apart(mode: TorchDispatchMode, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
    """Run the operator, so that the mode sees its parts."""
    with mode:
        return func._op_dk(_COMPOSITE, *args, **kwargs)
