"""Changes of a script that can be asked about, by name."""

from __future__ import annotations

# Stands for every one of them.
ALL = "all"
CHANGE_NAMES = (
    "tf32", "bf16", "fp16", "channels_last", "compile", "fused", "flash", "batch", "accumulate", "workers",
    "packed", "nvme",
)  # fmt: skip
