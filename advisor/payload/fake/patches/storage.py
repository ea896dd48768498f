"""Storages that change their size in place are counted.

FSDP frees a gathered layer by ``storage.resize_(0)`` and brings it back by another resize; seen only as
tensors that live on, every layer of the model would count as gathered all the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap ``UntypedStorage.resize_``."""
    original = torch.UntypedStorage.resize_

    def resize(storage: torch.UntypedStorage, size: int) -> object:
        result = original(storage, size)
        session.memory.resize(storage)
        return result

    replace(torch.UntypedStorage, resize_=resize)
