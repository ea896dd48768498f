"""``nn.DataParallel`` on one GPU calls its module.

It would do so anyway after passing the inputs through CUDA's scatter kernel, which a CPU build lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ...protocol import Warned
from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Replace ``DataParallel.forward``."""

    def forward(wrapper: Any, *args: object, **kwargs: object) -> object:
        session.warn(Warned.DATA_PARALLEL_ALONE)
        return wrapper.module(*args, **kwargs)

    replace(torch.nn.DataParallel, forward=forward)
