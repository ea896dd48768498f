"""Changes after which a script fits, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.core.units import format_bytes

_CHANGES = {
    "accumulation": "smaller batches with accumulation",
    "autocast": "autocast to 16 bits",
    "bf16-weights": "weights and optimizer state in bf16",
    "8-bit-optimizer": "an 8-bit optimizer",
    "lora": "fine-tuning adapters alone (LoRA)",
    "qlora": "fine-tuning adapters beside weights of 4 bits (QLoRA)",
    "checkpointing": "activation checkpointing",
    "zero-1": "sharding the optimizer (ZeRO-1)",
    "zero-2": "sharding optimizer and gradients (ZeRO-2)",
    "zero-3": "sharding the model (FSDP, ZeRO-3)",
    "hybrid": "sharding the model within each node (hybrid FSDP)",
}


def remedy_text(remedy: Mapping[str, Any]) -> str:
    """A change after which it fits, what it then needs, and what that costs in time."""
    changes = " and ".join(_CHANGES[change] for change in remedy["changes"])
    return f"{changes} ({format_bytes(remedy['needed_bytes'])}, {remedy['slower']:.2f} times as long)"
