"""Makes C++ see a meta tensor where Python sees a CUDA tensor.

FakeTensor asks ``Tensor._make_subclass`` for a tensor whose C++ device is CUDA. On a build without CUDA
the autograd engine then looks for a device guard that does not exist and aborts the process in
``backward``. With ``dispatch_device=False`` the C++ device stays meta, while the dispatch keys are
CUDA's and ``tensor.device`` says ``cuda:0``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Wrap ``Tensor._make_subclass`` and give FakeTensor the answers of a CUDA tensor."""
    original: Callable[..., object] = torch.Tensor._make_subclass

    # torch._dynamo wants this very signature.
    def make_subclass(cls: object, data: object, requires_grad: bool = False, **kwargs: object) -> object:
        device: Any = kwargs.get("device_for_backend_keys")
        if device is not None and torch.device(device).type == "cuda":
            kwargs["dispatch_device"] = False
        return original(cls, data, requires_grad, **kwargs)

    replace(torch.Tensor, _make_subclass=staticmethod(make_subclass))
    replace(
        FakeTensor,
        is_cuda=property(lambda tensor: tensor.fake_device.type == "cuda"),
        is_cpu=property(lambda tensor: tensor.fake_device.type == "cpu"),
        is_meta=property(lambda tensor: False),  # noqa: ARG005
        get_device=lambda tensor: tensor.fake_device.index or 0,
    )
