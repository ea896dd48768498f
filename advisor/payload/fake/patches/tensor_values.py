"""Reading a whole CUDA tensor on the host gives zeros.

``.tolist()``, ``.numpy()`` and printing read memory that a fake tensor does not have. (Single values,
as of ``.item()``, are answered by the dispatch mode.)
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

if TYPE_CHECKING:
    from advisor.payload.session import Session

_METHODS = ("numpy", "tolist", "__repr__", "__format__", "__array__")


def install(session: Session) -> None:
    """Wrap the methods that read a tensor's memory."""
    for name in _METHODS:
        # FakeTensor has some of its own, which read element by element.
        for kind in (torch.Tensor, FakeTensor):
            if name in kind.__dict__ or kind is torch.Tensor:
                _wrap(session, kind, name)


def _wrap(session: Session, kind: Any, name: str) -> None:
    original = getattr(kind, name)

    @functools.wraps(original)
    def method(tensor: torch.Tensor, *args: object, **kwargs: object) -> object:
        if not session.is_fake(tensor):
            return original(tensor, *args, **kwargs)
        if name in ("numpy", "__array__"):
            # The real one refuses, too: the script would fail on a GPU.
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy."
                " Use Tensor.cpu() to copy the tensor to host memory first."
            )
        # Read in one copy, as the real ones do.
        return getattr(tensor.detach().cpu(), name)(*args, **kwargs)

    setattr(kind, name, method)
