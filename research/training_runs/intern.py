"""InternLM-7B in BF16 with ZeRO-1 on 8 to 1,024 A100 (InternEvo, Apache-2.0, doc/en/train_performance.md).

Its table names nodes of eight GPUs and four cards of 100 Gb/s, sequences, micro-batches, among how many ranks
the optimizer's state is divided, tensor parallelism and checkpointing. The model is InternLM's published one.
Left out is what a second table repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Sharding, Split
from research.roce_clusters import INTERN_NETWORK_BYTES_PER_S, layout_of
from research.training.published_rows import published_rows
from research.training_runs.recipes import Recipe
from research.training_runs.runs import MISCELLANY, Run

_REPOSITORY, _GPU, _LAYERS = "InternLM/InternEvo", "A100-SXM-80GB", "32"
# A node's ranks must not be all of them, or a trace would not tell the two apart.
_WORLD_OF_GROUPS = 16


def intern_runs(published: Path) -> Iterator[Run]:
    """Each row once."""
    rows = (row for row in published_rows(published / MISCELLANY) if row["source_repo"] == _REPOSITORY)
    seen = set()
    for run in map(_run, rows):
        if (run.recipe, run.layout, run.split) not in seen:
            seen.add((run.recipe, run.layout, run.split))
            yield run


def _run(row: Mapping[str, str]) -> Run:
    gpu, options = resolve_gpu(_GPU), row["parallelism_and_options"]
    batch, passes = re.findall(r"\d+", row["batch_per_gpu"])
    length, tensor = int(float(row["sequence_length"])), 2 if "tp=2" in options else 1
    is_of_node, is_checkpointed = "zero1=-1" not in options, "act_ckpt=TRUE" in options
    words = {"layers": _LAYERS, "length": str(length), "batch": batch, "passes": passes}
    flags = {"whole": tensor > 1, "checkpoint": is_checkpointed}
    # Of a divided layer a plan divides the state, among all copies or not at all.
    sharding = Sharding.ZERO_1 if tensor > 1 and not is_of_node else Sharding.NONE
    group = ("--group", "8") if is_of_node and tensor == 1 else ()
    parts = (
        f"InternLM-7B, {batch} x {length:,} x {passes}",
        "ZeRO-1 of a node" if is_of_node else "ZeRO-1",
        *([f"layers in {tensor}"] if tensor > 1 else []),
        *(["checkpointed"] if is_checkpointed else []),
    )
    return Run(
        source="InternEvo",
        name=", ".join(parts),
        recipe=Recipe(
            script="intern_script.py",
            arguments=(
                *(word for name, value in words.items() for word in (f"--{name}", value)),
                *group,
                *(f"--{name}" for name, holds in flags.items() if holds),
            ),
            world_size=_WORLD_OF_GROUPS if group else 8,
        ),
        gpu=gpu,
        layout=layout_of(int(row["num_gpus"]), gpu, INTERN_NETWORK_BYTES_PER_S),
        # The script has all of them.
        passes=1,
        tokens=int(batch) * int(passes) * length // tensor,
        tokens_per_s=float(row["tokens_per_s_per_gpu"]),
        split=Split(sharding=sharding, tensor=tensor),
    )
