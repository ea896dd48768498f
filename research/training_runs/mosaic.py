"""MosaicML's table of MPT in BF16: 125M to 7B parameters on 8 to 512 GPUs (llm-foundry, Apache-2.0).

Sharding, checkpointing, micro-batches and their number are columns of it, and its numbers of parameters tell
that positions are learned and layers have biases. Two things are not: the optimizer, for which AdamW with
clipped gradients stands, and which version of FlashAttention ran. Its rows of 65,536 tokens, which are
almost nothing but attention, chose between the first and the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Interval, Layout
from research.roce_clusters import MOSAIC_NETWORK_BYTES_PER_S, layout_of
from research.training.drawn import fraction_of
from research.training.published_rows import published_rows
from research.training_runs.recipes import Recipe
from research.training_runs.runs import Run

FILE = "mpt_llmfoundry_train.csv"
# Width, heads and layers (third_party/README.md of the measurements).
SIZES = {
    "125m": (768, 12, 12), "350m": (1024, 16, 24), "760m": (1536, 12, 24), "1b": (2048, 16, 24),
    "3b": (2560, 20, 32), "7b": (4096, 32, 32),
}  # fmt: skip
_GPUS = {"a100_40gb": "A100-SXM-40GB", "a100_80gb": "A100-SXM-80GB", "h100_80gb": "H100-SXM-80GB"}
# Of FlashAttention over FlashAttention 2: "around 2x" (Dao, arXiv:2307.08691, abstract), by shape 1.7 to 3.0,
# and 1.3 to 2.5 of its version in Triton (section 4.1).
FLASH_1 = Interval(p10=1.6, p50=2.0, p90=2.5)
_CHOOSING_LENGTH, _CHOOSING_SIZES = 65_536, ("125m", "1b", "7b")
# Of rows of other lengths than 2,048 tokens a tenth is recorded, drawn by a hash.
_FULL_LENGTH, _DRAWN_SHARE = 2048, 0.1
_BF16 = ("bf16", "amp_bf16")


def mosaic_runs(third_party: Path) -> Iterator[Run]:
    """Each BF16 row of the sizes above, if its recipe is recorded."""
    rows = (
        row for row in published_rows(third_party / FILE) if row["precision"] in _BF16 and _size(row) in SIZES
    )
    yield from (_run(row) for row in rows if _is_recorded(row))


def _is_recorded(row: Mapping[str, str]) -> bool:
    if int(row["seq_len"]) == _CHOOSING_LENGTH:
        return _size(row) in _CHOOSING_SIZES
    return int(row["seq_len"]) == _FULL_LENGTH or fraction_of(_recipe(row).name) < _DRAWN_SHARE


def _size(row: Mapping[str, str]) -> str:
    return row["model"].removeprefix("MPT-")


def _run(row: Mapping[str, str]) -> Run:
    gpu, num_gpus = resolve_gpu(_GPUS[row["gpu"]]), int(row["n_gpus"])
    changes = [
        word
        for word, holds in (
            ("checkpointed", row["act_ckpt"] == "True"),
            ("ZeRO-2", row["sharding"] == "SHARD_GRAD_OP"),
        )
        if holds
    ]
    return Run(
        source="llm-foundry",
        name=", ".join((f"{row['model']}, {row['microbatch']} x {int(row['seq_len']):,}", *changes)),
        recipe=_recipe(row),
        gpu=gpu,
        layout=mosaic_layout(num_gpus, gpu),
        passes=int(row["grad_accum"]),
        tokens=int(row["microbatch"]) * int(row["seq_len"]),
        tokens_per_s=float(row["tokens_per_s"]) / num_gpus,
        attention=FLASH_1,
        chooses=int(row["seq_len"]) == _CHOOSING_LENGTH,
    )


def _recipe(row: Mapping[str, str]) -> Recipe:
    flags = {
        "checkpoint": row["act_ckpt"] == "True",
        "keep": row["sharding"] == "SHARD_GRAD_OP",
        "pure": row["mp_mode"] == "PURE",
    }
    given = [name for name, holds in flags.items() if holds]
    return mpt_recipe(_size(row), length=int(row["seq_len"]), batch=int(row["microbatch"]), flags=given)


def mpt_recipe(size: str, *, length: int, batch: int, flags: Sequence[str] = ()) -> Recipe:
    """Of a model of ``SIZES``.

    Args:
        size: such as ``7b``.
        length: tokens of a sequence.
        batch: sequences of a pass.
        flags: of the script, without their dashes.
    """
    width, heads, layers = SIZES[size]
    numbers = {"width": width, "heads": heads, "layers": layers, "length": length, "batch": batch}
    words = (word for name, number in numbers.items() for word in (f"--{name}", str(number)))
    return Recipe(script="mpt_script.py", arguments=(*words, *(f"--{flag}" for flag in flags)))


def mosaic_layout(num_gpus: int, gpu: GpuSpec) -> Layout:
    """Of MosaicML's clusters."""
    return layout_of(num_gpus, gpu, MOSAIC_NETWORK_BYTES_PER_S)
