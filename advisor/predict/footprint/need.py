"""Bytes that one GPU must hold: tensors at the peak, what the allocator loses, and what a process adds."""

from __future__ import annotations

import math

from advisor.core.values import WHOLE, GpuSpec, Interval, Layout, MemoryEstimate, MemoryPart, Split, Trace
from advisor.core.values.estimate import Z90
from advisor.predict.footprint.overheads import Overheads, overheads
from advisor.predict.footprint.tensors import Footprint, footprint

# Of activations at twice or half the profiled batch: of networks recorded at two batches, they grow in
# proportion within this.
_SIGMA_PER_DOUBLING = 0.02


def memory_need(trace: Trace, gpu: GpuSpec, layout: Layout, split: Split = WHOLE) -> MemoryEstimate | None:
    """What one GPU of the layout must hold for the script; None where its profile tells too little."""
    tensors = footprint(trace, layout, split)
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
    need = need_bytes(tensors, beside, batch, sigma_activations=sigma_activations)
    parts = {part: round(num_bytes) for part, num_bytes in tensors.parts(batch).items()}
    for part, interval in beside.parts.items():
        parts[part] = parts.get(part, 0) + round(interval.p50)
    # The rest, so that parts add up.
    parts[MemoryPart.FRAGMENTATION] = round(need.p50) - sum(parts.values())
    return MemoryEstimate(parts={part: parts[part] for part in MemoryPart}, need_bytes=need)


def need_bytes(
    tensors: Footprint, beside: Overheads, batch: float = 1.0, *, sigma_activations: float = 0.0
) -> Interval:
    """As :func:`need_of`, all parts together: a search for the largest batch asks often."""
    peak = tensors.peak(batch)
    lost, fixed = beside.fragmentation, beside.fixed
    sigma = math.hypot(sigma_activations, _SIGMA_PER_DOUBLING * math.log2(batch) if batch > 0 else 0.0)
    off = Z90 * sigma * peak.activations
    p50 = round(lost.p50 * peak.total + fixed.p50)
    below = math.hypot(off, (lost.p50 - lost.p10) * peak.total, fixed.p50 - fixed.p10)
    above = math.hypot(off, (lost.p90 - lost.p50) * peak.total, fixed.p90 - fixed.p50)
    return Interval(p10=p50 - below, p50=p50, p90=p50 + above)
