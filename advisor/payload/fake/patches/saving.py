"""``torch.save`` writes to a folder that is thrown away, and a CUDA tensor as its shape alone.

A profiled script must not overwrite its owner's checkpoints with made-up weights, but may want to read
its own ones back. Tensors of the pretended GPU have no values, so saving them takes neither memory nor
disk; CPU tensors are real and so are saved with their values.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...protocol import Warned
from ...replacing import replace
from ..untouched import untouched_zeros

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap ``torch.save`` and teach pickle what a tensor of the pretended GPU is."""
    original: Callable[..., None] = torch.save

    @functools.wraps(original)
    def save(obj: object, f: object, *args: object, **kwargs: object) -> None:
        # Without the folder the original says so.
        if isinstance(f, (str, os.PathLike)) and os.path.isdir(os.path.dirname(os.path.abspath(f))):
            session.warn(Warned.FILES_THROWN_AWAY, library="torch.save")
            f = session.saved.place(f)
        original(obj, f, *args, **kwargs)

    def rebuild_tensor(
        shape: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        requires_grad: bool,
        is_parameter: bool,
    ) -> object:
        if session.restores_to_gpu:
            tensor = session.pretending.empty(shape, dtype, stride)
        else:
            tensor = untouched_zeros(shape, stride, dtype)
        if is_parameter:
            return torch.nn.Parameter(tensor, requires_grad)
        return tensor.requires_grad_(requires_grad)

    def reduce(tensor: torch.Tensor, _: object) -> object:
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        described = (tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad, is_parameter)
        return rebuild_tensor, described

    # Pickle finds functions by their names.
    rebuild_tensor.__qualname__ = rebuild_tensor.__name__
    globals()[rebuild_tensor.__name__] = rebuild_tensor
    torch.serialization.add_safe_globals([rebuild_tensor])
    torch.save = torch.serialization.save = save
    if session.backend == "fake":
        replace(FakeTensor, __reduce_ex__=reduce)
