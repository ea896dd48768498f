"""Composite operators that reach a dispatch mode whole.

torch takes ``conv2d``, ``linear`` or ``matmul`` apart above the modes, but not in inference mode, nor below
autograd, as in the kernels of a library's own operators. What a GPU runs are the parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

# What torch's dispatcher passes on.

Args = Sequence[object]
Kwargs = dict[str, object]
Types = Sequence[type]


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
# Parts are for devices that have no kernel; GPUs have one, and for its gradient another.
ONE_KERNEL = frozenset({"aten::silu_backward", "aten::mish_backward", "aten::_fused_rms_norm"})
# A library's own operator -> what computes the same by torch's, as its kernel does for many rows.
PARTS: dict[OpOverload, Callable[..., object]] = {}


@functools.cache
def is_composite(func: OpOverload) -> bool:
    """Whether a GPU runs other operators in its place."""
    if func.name() in ONE_KERNEL:
        return False
    if func in PARTS:
        return True
    # Not _can_decompose: Python also knows decompositions of operators that are one kernel.
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE))


def take_apart(mode: TorchDispatchMode, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
    """Run the operator, so that the mode sees its parts."""
    parts = PARTS.get(func)
    with mode:
        return func._op_dk(_COMPOSITE, *args, **kwargs) if parts is None else parts(*args, **kwargs)


class Maker(Protocol):
    """The part of the dispatch mode that makes results."""

    unknown_operators: dict[str, str]
    """Names of those that nothing is known of, each with the error that said so."""
    assumptions: dict[str, None]
    """What is taken for granted of values that are not computed."""

    def empty(
        self, shape: Sequence[int], dtype: torch.dtype, stride: Sequence[int] | None = None
    ) -> torch.Tensor:
        pass

    def pretend(self, func: OpOverload, types: Types, args: Args, kwargs: Kwargs) -> object:
        pass
