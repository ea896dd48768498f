"""Makes C++ see a meta tensor where Python sees a CUDA tensor.

FakeTensor asks ``Tensor._make_subclass`` for a tensor whose C++ device is CUDA. On a build without CUDA
the autograd engine then looks for a device guard that does not exist and aborts the process in
``backward``. With ``dispatch_device=False`` the C++ device stays meta, while the dispatch keys are
CUDA's and ``tensor.device`` says ``cuda:0``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Wrap ``Tensor._make_subclass`` and give FakeTensor the answers of a CUDA tensor."""
    original = torch.Tensor._make_subclass

    # torch._dynamo wants this very signature.
    def make_subclass(cls: Any, data: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        device = kwargs.get("device_for_backend_keys")
        if device is not None and torch.device(device).type == "cuda":
            kwargs["dispatch_device"] = False
        return original(cls, data, requires_grad, **kwargs)

    torch.Tensor._make_subclass = staticmethod(make_subclass)
    FakeTensor.is_cuda = property(lambda tensor: tensor.fake_device.type == "cuda")
    FakeTensor.is_cpu = property(lambda tensor: tensor.fake_device.type == "cpu")
    FakeTensor.is_meta = property(lambda tensor: False)  # noqa: ARG005
    FakeTensor.get_device = lambda tensor: tensor.fake_device.index or 0
