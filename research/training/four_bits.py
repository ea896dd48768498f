"""How long weights of four bits take to become 16, told by whole runs of litgpt on an A10G.

A QLoRA run differs from the LoRA run of the same model and batch by nothing but that bitsandbytes makes the
weights of its layers anew, forward and backward. Both are bound by the GPU there. Runs on an A100 are left to
judge it (research/docs/accuracy/recipes.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from research.training.published_rows import published_rows

ORIGIN = "Lightning-AI/litgpt config_hub (Apache-2.0), QLoRA beside LoRA runs of one A10G in finetuning.csv"
KIND, FILE, GPU = "four bits", "finetuning.csv", "A10G"
# Samples of an epoch; evaluations make up about what is kept for them.
_SAMPLES = 2000
# Weights of a block, from the models' configurations.
_BLOCKS = {
    "llama-2-7b": 32 * (4 * 4096**2 + 3 * 4096 * 11008),
    "falcon-7b": 32 * (4544 * (4544 + 2 * 64) + 9 * 4544**2),
    "phi-2": 32 * 12 * 2560**2,
    "Phi-3-mini-4k-instruct": 32 * (4 * 3072**2 + 3 * 3072 * 8192),
    "tiny-llama": 22 * (2 * 2048**2 + 2 * 2048 * 256 + 3 * 2048 * 5632),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWeights:
    """Of one model: how many weights its QLoRA run made, and in how much longer."""

    model: str
    weights: float
    time_s: float


def made_weights(measurements: Path) -> Iterator[MadeWeights]:
    """Each pair of runs of one model and batch. Raises FileNotFoundError: the table is missing."""
    rows = {
        (row["model"], row["micro_batch"], bool(row["quantization"])): row
        for row in published_rows(measurements / "published" / FILE)
        if row["gpu"] == GPU and row["num_gpus"] == "1" and row["method"] in ("lora", "qlora")
    }
    for (model, batch, is_packed), row in rows.items():
        plain = rows.get((model, batch, False))
        if is_packed and plain and model in _BLOCKS:
            passes = 2 * float(row["epochs"]) * _SAMPLES / int(batch)
            longer_s = float(row["seconds"]) - float(plain["seconds"])
            yield MadeWeights(model=model, weights=passes * _BLOCKS[model], time_s=longer_s)
