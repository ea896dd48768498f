"""Which shortcuts a script takes: what autocast casts to on a real device, and where TF32 is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..protocol import Flags
from ..replacing import Original, wrap

if TYPE_CHECKING:
    from ..session import Session


def watch_autocast(session: Session) -> None:
    """Wrap entry and exit of ``torch.autocast``: on a real device torch's own kernels do the casting."""
    autocast = torch.amp.autocast_mode.autocast
    in_force: list[str | None] = [None]

    def enter_watched(enter: Original, context: torch.autocast) -> object:
        if context.device == session.device_type:
            dtype = str(context.fast_dtype).rpartition(".")[2] if context._enabled else None
            in_force.append(dtype)
            session.autocast_dtype = dtype
            session.amp_dtype = session.amp_dtype or dtype
        return enter(context)

    def leave_watched(leave: Original, context: torch.autocast, *error: object) -> object:
        if context.device == session.device_type and len(in_force) > 1:
            in_force.pop()
            session.autocast_dtype = in_force[-1]
        return leave(context, *error)

    wrap(autocast, "__enter__", enter_watched)
    wrap(autocast, "__exit__", leave_watched)


def tf32_flags() -> Flags:
    """Where the script lets TF32 replace FP32."""
    return {
        "tf32_matmul": torch.get_float32_matmul_precision() != "highest",
        "tf32_cudnn": bool(torch.backends.cudnn.allow_tf32),
    }
