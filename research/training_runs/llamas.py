"""Llama 3 8B in BF16 under FSDP: torchtitan's and torchao's tables on eight GPUs and more, VectorLM's on few.

Left out are rows in FP8 and with tensor or pipeline parallelism, and torchao's B200, whose power was limited,
by how much is not published. Meta's H100 are a board of their own: they may draw 500 of 700 W, which is
counted, and have 96 GB of HBM2e, which is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from research.roce_clusters import TITAN_NETWORK_BYTES_PER_S, layout_of
from research.training.published_rows import published_rows
from research.training_runs.recipes import Recipe
from research.training_runs.runs import MISCELLANY, Run

VECTOR_FILE = "vectorlm_llama3_a100.csv"
_LAYERS = "32"
_TITAN_GPU, _VECTOR_GPU = "H100-SXM-80GB", "A100-SXM-80GB"
_POWER = re.compile(r"\b(\d+) ?W\b")
_TITAN_REPOSITORIES = ("pytorch/torchtitan", "pytorch/ao")


def titan_runs(published: Path) -> Iterator[Run]:
    """Steps of torchtitan on H100, eager and compiled."""
    gpu = resolve_gpu(_TITAN_GPU)
    for row in published_rows(published / MISCELLANY):
        options = row["parallelism_and_options"]
        if not _is_titan(row):
            continue
        batch, length = row["batch_per_gpu"], str(int(float(row["sequence_length"])))
        yield Run(
            source=row["source_repo"].removeprefix("pytorch/"),
            name=f"Llama 3 8B, {batch} x {int(length):,}{', compiled' if 'compile' in options else ''}",
            recipe=Recipe(script="titan_script.py", arguments=_arguments(length, batch)),
            gpu=gpu,
            layout=layout_of(int(row["num_gpus"]), gpu, TITAN_NETWORK_BYTES_PER_S, _watts(row["gpu"])),
            passes=1,
            tokens=int(batch) * int(length),
            tokens_per_s=float(row["tokens_per_s_per_gpu"]),
            compiles="compile" in options,
        )


def _watts(board: str) -> float | None:
    """What a board may draw, where its name says so.

    >>> _watts("H100 96GB HBM2e 500W (Grand Teton)")
    500.0
    """
    named = _POWER.search(board)
    return None if named is None else float(named[1])


def _is_titan(row: Mapping[str, str]) -> bool:
    return (
        row["source_repo"] in _TITAN_REPOSITORIES
        and row["precision"] == "bf16"
        and row["gpu"].startswith("H100")
        and bool(row["step_ms"])
    )


def vector_runs(published: Path) -> Iterator[Run]:
    """VectorLM's fine-tuning of all weights and of adapters on 1 to 4 A100."""
    gpu = resolve_gpu(_VECTOR_GPU)
    for row in published_rows(published / VECTOR_FILE):
        batch, length, num_gpus = row["batch_per_gpu"], row["sequence_length"], int(row["num_gpus"])
        is_lora = row["method"] == "lora"
        lora = ("--lora",) if is_lora else ()
        yield Run(
            source="VectorLM",
            name=f"Llama 3 8B, {batch} x {int(length):,}{', LoRA' if is_lora else ''}",
            recipe=Recipe(script="vector_script.py", arguments=(*_arguments(length, batch), *lora)),
            gpu=gpu,
            layout=layout_of(num_gpus, gpu, None),
            passes=1,
            tokens=int(batch) * int(length),
            tokens_per_s=float(row["tokens_per_s_total"]) / num_gpus,
        )


def _arguments(length: str, batch: str) -> tuple[str, ...]:
    return ("--layers", _LAYERS, "--length", length, "--batch", batch)
