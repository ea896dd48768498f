"""How much longer an iteration takes because its GPUs exchange all gradients.

Buckets are exchanged one after the other, each as soon as it is complete. Meanwhile kernels of the backward
pass run slower, since both need SMs and memory bandwidth. What is left when the pass ends is exposed: at
least the last bucket. PyTorch DDP also copies gradients into its buckets and back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Layout, Trace
from advisor.core.values.estimate import Z90
from advisor.predict.exchange.collective_time import collective_law
from advisor.predict.exchange.collectives import exchanging_passes
from advisor.predict.exchange.gradients import buckets_of

COMMUNICATION = "exposed communication"
"""What takes time beside operators and waits, where times are listed by name."""
# Into the buckets and back: each copy reads and writes.
_COPIED = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Seconds by which exchanging lengthens an iteration, and their standard deviation."""

    seconds: float = 0.0
    sigma_s: float = 0.0


def together(*parts: Exchange) -> Exchange:
    """One after the other; machines that are slow in one are slow in the others."""
    return Exchange(seconds=sum(part.seconds for part in parts), sigma_s=sum(part.sigma_s for part in parts))


def exchange_of_gradients(
    trace: Trace,
    time_s: Floats,
    backward_s: float,
    gpu: GpuSpec,
    layout: Layout,
    *,
    slowdown: float,
    crowd: int = 1,
) -> Exchange:
    """What data parallelism adds to an iteration.

    Args:
        trace: tells of gradients, buckets and passes.
        time_s: seconds of each operator on one GPU.
        backward_s: of all backward passes together; operators keep their shares of them.
        gpu: of which kind all are.
        layout: how many they are, and over what they exchange.
        slowdown: of kernels while GPUs exchange, as a share of their time.
        crowd: groups of this layout that share a node's network.
    """
    if layout.num_gpus == 1:
        return Exchange()
    buckets, passes = buckets_of(trace), exchanging_passes(trace)
    pass_s = backward_s / trace.accumulation
    # Who waits for each bucket computes nothing meanwhile: as if all came at the end, where nothing hides.
    ready_s = buckets.ready(time_s) * pass_s
    if trace.awaits_reductions:
        ready_s, slowdown = np.full_like(ready_s, pass_s), 0.0
    times = collective_law("all_reduce", layout, gpu).times(
        crowd * np.array(buckets.num_bytes, dtype=np.float64)
    )
    median_s = _added_s(times.seconds, ready_s, pass_s, slowdown)
    late_s = _added_s(times.seconds * np.exp(Z90 * times.sigma), ready_s, pass_s, slowdown)
    copies_s = _COPIED * sum(buckets.num_bytes) / gpu.memory_bytes_per_s
    return Exchange(seconds=passes * (median_s + copies_s), sigma_s=passes * (late_s - median_s) / Z90)


def _added_s(lasts_s: Floats, ready_s: Floats, pass_s: float, slowdown: float) -> float:
    """Seconds by which exchanging buckets, ready at these times, lengthens a backward pass."""
    # Kernels run slower for as long as both go on.
    stretched = 1 + slowdown * min(1.0, float(lasts_s.sum()) / pass_s) if pass_s else 1.0
    to_come_s = np.cumsum(lasts_s[::-1])[::-1]
    return max(float(np.max(ready_s * stretched + to_come_s)), pass_s * stretched) - pass_s
