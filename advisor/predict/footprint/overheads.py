"""What a process holds beside the tensors of its script: ``catalogs/memory.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from advisor.core.gpus import catalog_path
from advisor.core.units import MIB
from advisor.core.values import GpuSpec, Interval, Layout, MemoryPart, Trace
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.gemm import GEMM
from advisor.operators.registry import family_of
from advisor.predict.distinct import Same

# Threads that an SM of an unknown kind can hold (CUDA programming guide, compute capability 7.0).
_THREADS = 2048
NOTHING = Interval(p10=0.0, p50=0.0, p90=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What is held beside tensors.

    Attributes:
        parts: bytes that no batch changes.
        fixed: their sum.
        fragmentation: what the allocator reserves, over what tensors hold at the peak.
    """

    parts: Mapping[MemoryPart, Interval]
    fixed: Interval
    fragmentation: Interval


def overheads(trace: Trace, gpu: GpuSpec, layout: Layout) -> Overheads:
    """Those of the script on one GPU of the layout.

    A peak that a real GPU's allocator measured has the libraries' scratch space in it.
    """
    words = frozenset() if trace.backend == "cuda" else _words(Same(trace.ops))
    return overheads_of(words, gpu, layout)


@lru_cache(maxsize=8)
def _words(same: Same) -> frozenset[str]:
    return frozenset(family_of(op).word for op in same.ops)


def overheads_of(families: frozenset[str], gpu: GpuSpec, layout: Layout) -> Overheads:
    """Those of a script whose operators are of families with these words, and take scratch space."""
    channels = _facts()["communication"]["channels_mib"]
    parts = {
        MemoryPart.COMMUNICATION: _interval(channels) if layout.num_gpus > 1 else NOTHING,
        MemoryPart.WORKSPACE: added(_workspaces(families, gpu)),
        MemoryPart.CONTEXT: _context(gpu),
    }
    return Overheads(parts=parts, fixed=added(list(parts.values())), fragmentation=fragmentation())


def fragmentation() -> Interval:
    """What the caching allocator reserves, over what tensors hold at the peak."""
    return _interval(_facts()["fragmentation"]["share"], unit=1)


def added(intervals: list[Interval]) -> Interval:
    """The sum of independent quantities: medians add up, widths in quadrature."""
    p50 = sum(one.p50 for one in intervals)
    below = sum((one.p50 - one.p10) ** 2 for one in intervals) ** 0.5
    above = sum((one.p90 - one.p50) ** 2 for one in intervals) ** 0.5
    return Interval(p10=p50 - below, p50=p50, p90=p50 + above)


def _workspaces(families: frozenset[str], gpu: GpuSpec) -> list[Interval]:
    facts = _facts()
    products = facts["products"]
    is_large = _capability(gpu) >= products["large_from_capability"]
    spaces = {
        GEMM.word: products["large_workspace_mib" if is_large else "workspace_mib"],
        CONVOLUTION.word: facts["convolutions"]["workspace_mib"],
    }
    return [_interval(mib) for word, mib in spaces.items() if word in families]


def _context(gpu: GpuSpec) -> Interval:
    facts = _facts()["context"]
    threads = gpu.num_sms * (_THREADS if gpu.occupancy is None else gpu.occupancy.max_threads)
    stacks = threads * facts["stack_bytes_per_thread"]
    modules = _interval(facts["modules_mib"])
    return Interval(p10=modules.p10 + stacks, p50=modules.p50 + stacks, p90=modules.p90 + stacks)


def _capability(gpu: GpuSpec) -> float:
    try:
        return float(gpu.compute_capability)
    except ValueError:
        return 0.0


def _interval(facts: Mapping[str, float], unit: float = MIB) -> Interval:
    return Interval(p10=facts["low"] * unit, p50=facts["mid"] * unit, p90=facts["high"] * unit)


@cache
def _facts() -> Mapping[str, Any]:
    return tomllib.loads(catalog_path("memory.toml").read_text(encoding="utf-8"))
