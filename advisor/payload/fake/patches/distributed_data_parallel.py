"""``DistributedDataParallel`` does not compare its parameters with those of other ranks.

The comparison gathers shapes through a tensor on the GPU, whose values are made up here, and so finds
that the ranks differ. All else works as it is: its buckets are collectives like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001
    """Leave out the comparison."""
    replace(torch.nn.parallel.distributed, _verify_param_shape_across_processes=_agree)


def _agree(*_: object, **__: object) -> bool:
    return True
