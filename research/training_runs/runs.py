"""A published run, and the fields of its table that describe it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.values import WHOLE, GpuSpec, Interval, Layout, Split
from research.training_runs.recipes import Recipe

MISCELLANY = "misc_llm_tpu_training_throughput.csv"
"""The published table of torchtitan, torchao and InternEvo."""
FLASH_2 = Interval(p10=1.0, p50=1.0, p90=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One published rate.

    Attributes:
        source: whose table it is of.
        name: of the model and how it was trained.
        recipe: what resembles one forward and backward pass of one of its ranks.
        passes: of a step, before the optimizer's.
        tokens: of one pass of one GPU.
        tokens_per_s: of one GPU, as published.
        split: how the recipe's model is supposed to be divided.
        compiles: by torch.compile.
        attention: time of its kernel of attention over that of FlashAttention 2.
        chooses: it chose that, and judges nothing.
    """

    source: str
    name: str
    recipe: Recipe
    gpu: GpuSpec
    layout: Layout
    passes: int
    tokens: int
    tokens_per_s: float
    split: Split = WHOLE
    compiles: bool = False
    attention: Interval = FLASH_2
    chooses: bool = False
