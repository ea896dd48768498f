"""``FullyShardedDataParallel``, the first FSDP, on a build without CUDA.

It makes a device of the integer that ``device_id=`` or ``torch.cuda.current_device()`` says, for which C++
looks for an accelerator. All else works as it is; FSDP2 takes no device.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from ... import torch_names
from ...importing import when_imported
from ...replacing import replace
from .factories import plain_device

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Change the class once the script imports it: it takes long to import."""
    when_imported("torch.distributed.fsdp.fully_sharded_data_parallel", _accept_integers)


def _accept_integers(module: ModuleType) -> None:
    torch_names.check(torch_names.SHARDED_NAMES)
    from torch.distributed.fsdp._common_utils import _FSDPDeviceHandle

    wrapper: Any = module.FullyShardedDataParallel
    create = wrapper.__init__
    signature = inspect.signature(create)

    @functools.wraps(create)
    def init(*args: object, **kwargs: object) -> None:
        given = signature.bind(*args, **kwargs)
        if "device_id" in given.arguments:
            given.arguments["device_id"] = plain_device(given.arguments["device_id"])
        create(*given.args, **given.kwargs)

    # What it says of the current device becomes a device, which a device may.
    def from_device(device: torch.device) -> Any:
        handle: Any = _FSDPDeviceHandle(device)
        handle.current_device = lambda: plain_device(device)
        return handle

    replace(wrapper, __init__=init)
    replace(_FSDPDeviceHandle, from_device=staticmethod(from_device))
