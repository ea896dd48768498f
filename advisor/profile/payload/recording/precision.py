"""Notes what autocast casts to on a real device, where torch's own kernels do the casting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ..session import Session


def watch_autocast(session: Session) -> None:
    """Wrap the entry of ``torch.autocast``."""
    autocast = torch.amp.autocast_mode.autocast
    enter = autocast.__enter__

    def enter_watched(context: Any) -> Any:
        if context._enabled and context.device == session.device_type:
            session.amp_dtype = str(context.fast_dtype).rpartition(".")[2]
        return enter(context)

    autocast.__enter__ = enter_watched


def tf32_flags() -> dict[str, bool]:
    """Where the script lets TF32 replace FP32."""
    return {
        "tf32_matmul": torch.get_float32_matmul_precision() != "highest",
        "tf32_cudnn": bool(torch.backends.cudnn.allow_tf32),
    }
