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
    """One published rate."""

    source: str
    """Whose table it is of."""
    name: str
    """Of the model and how it was trained."""
    recipe: Recipe
    """What resembles one forward and backward pass of one of its ranks."""
    gpu: GpuSpec
    layout: Layout
    passes: int
    """Of a step, before the optimizer's."""
    tokens: int
    """Of one pass of one GPU."""
    tokens_per_s: float
    """Of one GPU, as published."""
    split: Split = WHOLE
    """How the recipe's model is supposed to be divided."""
    compiles: bool = False
    """By torch.compile."""
    attention: Interval = FLASH_2
    """Time of its kernel of attention over that of FlashAttention 2."""
    chooses: bool = False
    """It chose that, and judges nothing."""
