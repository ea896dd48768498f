"""``init_process_group`` makes a group of which this process is the only one that exists.

Any backend becomes torch's ``fake`` one: NCCL is not in a CPU build, and Gloo would wait for the others.
The group's size is the script's own, torchrun's environment or ``--world``; its rank is the script's or 0.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session

_NCCL = (2, 27, 5)


def install(session: Session) -> None:
    """Replace what makes groups, and torchrun's environment."""
    session.world.set_environment()
    if not torch.distributed.is_available():
        return
    import torch.distributed as dist
    from torch.distributed import device_mesh, distributed_c10d

    originals: dict[str, Callable[..., Any]] = {
        "init": dist.init_process_group,
        "new": distributed_c10d._new_process_group_helper,
    }
    originals["backend"] = dist.get_backend
    signature = inspect.signature(originals["init"])
    names: list[str] = []
    backends: dict[object, str] = {}

    def init_process_group(*args: object, **kwargs: object) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        given = signature.bind(*args, **kwargs).arguments
        rank = given.get("rank", -1)
        size = session.world.size_of_group(given.get("world_size", -1))
        names[:] = [str(given.get("backend") or "nccl").lower()]
        rank = rank if rank >= 0 else int(os.environ.get("RANK", 0))
        originals["init"]("fake", rank=rank, world_size=size, store=FakeStore())

    # Of the positional arguments the fourth is the backend; options and device are NCCL's.
    def new_process_group(*args: object, **kwargs: object) -> object:
        kwargs.update(backend_options=None, device_id=None)
        made = originals["new"](*args[:3], "fake", *args[4:6], **kwargs)
        if args[3] not in ("fake", None):
            backends[made[0]] = str(args[3]).lower()
        return made

    for module in (dist, distributed_c10d, device_mesh):
        replace(module, init_process_group=init_process_group)
    replace(distributed_c10d, _new_process_group_helper=new_process_group)

    # Scripts choose by it; that ours is fake is not theirs to know.
    def get_backend(group: object = None) -> object:
        return originals["backend"](group) and backends.get(group, names[0])

    for module in (dist, distributed_c10d):
        replace(module, get_backend=get_backend, is_nccl_available=lambda: True)
    # Asked by hooks that exchange BF16, and by scripts before they train in it.
    replace(torch.cuda.nccl, version=lambda: _NCCL)
