"""Which library steps the optimizer, if it trains on several GPUs by itself once it is started on them.

transformers' Trainer, accelerate and Lightning wrap the model, share out the data and hold back the exchange
while gradients accumulate. A script of theirs needs no change for that, only another start.
"""

from __future__ import annotations

from types import FrameType

# Whose code stands between the script and the optimizer: a module, or all below it.
_LIBRARIES = {
    "transformers.trainer": "transformers",
    "accelerate": "accelerate",
    "lightning": "lightning",
    "lightning_fabric": "lightning",
    "pytorch_lightning": "lightning",
}


def parallel_by(frame: FrameType | None) -> str | None:
    """The library among the callers of this frame, the outermost of several; None without one."""
    found = None
    while frame is not None:
        found = _library(frame.f_globals.get("__name__")) or found
        frame = frame.f_back
    return found


def _library(module: object) -> str | None:
    if not isinstance(module, str):
        return None
    return next((name for top, name in _LIBRARIES.items() if f"{module}.".startswith(f"{top}.")), None)
