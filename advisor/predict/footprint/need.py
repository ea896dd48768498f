"""Bytes that one GPU must hold: tensors at the peak, what the allocator loses, and what a process adds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.core.values import GpuSpec, Interval, Layout, MemoryEstimate, MemoryPart, Trace
from advisor.predict.footprint.overheads import Overheads, overheads
from advisor.predict.footprint.tensors import Footprint, footprint
from advisor.predict.interval import Z90

# Of activations at twice or half the profiled batch: of networks recorded at two batches, they grow in
# proportion within this.
_SIGMA_PER_DOUBLING = 0.02


def memory_need(trace: Trace, gpu: GpuSpec, layout: Layout) -> MemoryEstimate | None:
    """What one GPU of the layout must hold for the script; None where its profile tells too little."""
    tensors = footprint(trace, layout)
    return None if tensors is None else need_of(tensors, overheads(trace, gpu, layout))


def need_of(
    tensors: Footprint, beside: Overheads, batch: float = 1.0, *, sigma_activations: float = 0.0
) -> MemoryEstimate:
    """The need with such a share of the profiled batch in each pass.

    Args:
        tensors: of the script.
        beside: what a process holds besides.
        batch: of a pass, over the profiled one.
        sigma_activations: of activations that were not recorded, over their size.
    """
    held = tensors.tensors(batch)
    total = sum(held.values())
    lost = beside.fragmentation
    fragments = Interval(p10=(lost.p10 - 1) * total, p50=(lost.p50 - 1) * total, p90=(lost.p90 - 1) * total)
    sigma = math.hypot(sigma_activations, _SIGMA_PER_DOUBLING * math.log2(batch) if batch > 0 else 0.0)
    off = Z90 * sigma * held[MemoryPart.ACTIVATIONS]
    intervals = (*beside.parts.values(), fragments)
    parts = _medians(held, beside, fragments)
    p50 = float(sum(parts.values()))
    below = math.hypot(off, *(one.p50 - one.p10 for one in intervals))
    above = math.hypot(off, *(one.p90 - one.p50 for one in intervals))
    return MemoryEstimate(parts=parts, need_bytes=Interval(p10=p50 - below, p50=p50, p90=p50 + above))


def _medians(
    held: Mapping[MemoryPart, float], beside: Overheads, fragments: Interval
) -> Mapping[MemoryPart, int]:
    medians = dict(held) | {MemoryPart.FRAGMENTATION: fragments.p50}
    for part, interval in beside.parts.items():
        medians[part] = medians.get(part, 0.0) + interval.p50
    return {part: round(medians[part]) for part in MemoryPart}
