"""``FullyShardedDataParallel(..., device_id=0)``, the first FSDP, on a build without CUDA.

It makes a device of the integer that ``torch.cuda.current_device()`` says, for which C++ looks for an
accelerator. All else works as it is; FSDP2 takes no device.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from .factories import plain_device

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Change the class once there is a group, if the script has imported it."""
    session.world.on_group.append(_accept_integers)


def _accept_integers() -> None:
    module: Any = sys.modules.get("torch.distributed.fsdp.fully_sharded_data_parallel")
    if module is None:
        return
    wrapper = module.FullyShardedDataParallel
    create = wrapper.__init__

    @functools.wraps(create)
    def init(self: Any, *args: object, **kwargs: object) -> None:
        if "device_id" in kwargs:
            kwargs["device_id"] = plain_device(kwargs["device_id"])
        create(self, *args, **kwargs)

    wrapper.__init__ = init
