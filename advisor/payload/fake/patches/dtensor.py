"""A DTensor is where its shard is, and finds the shapes of results without our dispatch mode.

It asks C++ for the shard's device, which says meta where Python says CUDA (see ``subclass``): FSDP2 then
believes that its parameters were never materialised. For the shape of a result it runs the operator on
fake tensors of its own, which our mode would take for the script's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ... import torch_names
from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Change the class once there is a mesh: it takes long to import."""
    if not torch.distributed.is_available():
        return
    from torch.distributed import device_mesh

    mesh = device_mesh.DeviceMesh
    create: Callable[..., None] = mesh.__init__

    def init(self: Any, *args: object, **kwargs: object) -> None:
        create(self, *args, **kwargs)
        replace(mesh, __init__=create)
        _change_class(session)

    replace(mesh, __init__=init)


def _change_class(session: Session) -> None:
    torch_names.check(torch_names.MESH_NAMES)
    from torch.distributed.tensor import DTensor, _sharding_prop

    replace(
        DTensor,
        device=property(lambda tensor: tensor._local_tensor.device),
        is_cuda=property(lambda tensor: tensor._local_tensor.is_cuda),
        is_cpu=property(lambda tensor: tensor._local_tensor.is_cpu),
        is_meta=property(lambda tensor: False),  # noqa: ARG005
    )
    replace(_sharding_prop, detect_fake_mode=lambda *_: session.pretending.fake_mode)
    name = "_propagate_tensor_meta_non_cached"
    propagator = _sharding_prop.ShardingPropagator
    if hasattr(propagator, name):
        setattr(propagator, name, _without_modes(getattr(propagator, name)))


def _without_modes(original: Callable[..., object]) -> Callable[..., object]:
    def propagate(*args: object, **kwargs: object) -> object:
        with torch.utils._python_dispatch._disable_current_modes():
            return original(*args, **kwargs)

    return propagate
