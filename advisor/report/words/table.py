"""What a table of words is, and words that several tables have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd

Words: TypeAlias = Mapping[Code, str | Callable[..., str]]
"""By code: a function of the facts, or a text with their names in braces."""


# Kinds of work on a script (`Work`), as what it gets.
_WORK = {
    "ddp": "DDP",
    "fsdp": "FSDP",
    "model-parallel": "a divided model",
    "checkpoints": "checkpoints",
    "learning-rate": "a new learning rate",
    "nodes": "a start on each node",
    "software": "other packages",
    "script": "other lines of the script",
}


# What sharing the work of a step among GPUs brings with it.
_OF_SHARING, _WITH_SHARING = {"ddp", "fsdp", "model-parallel"}, {"learning-rate", "nodes"}


def named(work: Sequence[str]) -> str:
    """``DDP and checkpoints``."""
    left_out = set() if _OF_SHARING.isdisjoint(work) else _WITH_SHARING
    names = [_WORK[one] for one in work if one not in left_out]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def effort(usd: float, seconds: float) -> str:
    """``$25.00 and 30 min``."""
    return f"{format_usd(usd)} and {format_duration(seconds)}"
