"""Whether the memory of a machine holds the processes that train on its GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from advisor.core.findings import Finding
from advisor.core.findings.about_options import HostMemoryTight, RemovedByHostMemory
from advisor.core.values import Fit, Interval, IterationEstimate, MemoryPart, Plan
from advisor.pricing.instance_types import load_instances

# Nothing of the host's memory is recorded, so each part is a distribution that is judged, from memory,
# 2026-11-26. p10, p50 and p90 are added as if all were small or large together.

_SYSTEM_BYTES = Interval(p10=0.5e9, p50=1e9, p90=2e9)
# A Python with torch and the libraries of CUDA, for each GPU.
_PROCESS_BYTES = Interval(p10=1.5e9, p50=3e9, p90=5e9)
# Of a process that loads data: it begins as a copy of the training process and shares most of its pages.
_WORKER_BYTES = Interval(p10=0.1e9, p50=0.4e9, p90=1e9)
_UNKNOWN_WORKERS = Interval(p10=0, p50=2, p90=8)
# Weights are streamed to the GPU, made on the host first, or read there from a file beside that.
_COPIES_OF_WEIGHTS = Interval(p10=0, p50=1, p90=2)


def host_bytes(estimate: IterationEstimate) -> Interval | None:
    """What the processes of one node need, cached files aside; None where the weights are unknown."""
    if estimate.memory is None or MemoryPart.WEIGHTS not in estimate.memory.parts:
        return None
    num_workers = None if estimate.input is None else estimate.input.num_workers
    return _need(estimate.memory.parts[MemoryPart.WEIGHTS], num_workers, estimate.layout.gpus_per_node)


@lru_cache(1024)
def _need(weights_bytes: int, num_workers: int | None, gpus_per_node: int) -> Interval:
    """Thousands of machines share a few of them."""

    def at(name: str) -> float:
        workers = getattr(_UNKNOWN_WORKERS, name) if num_workers is None else num_workers
        each = getattr(_PROCESS_BYTES, name) + workers * getattr(_WORKER_BYTES, name)
        each += getattr(_COPIES_OF_WEIGHTS, name) * weights_bytes
        return float(getattr(_SYSTEM_BYTES, name) + gpus_per_node * each)

    return Interval(p10=at("p10"), p50=at("p50"), p90=at("p90"))


def host_memory_notes(plan: Plan, estimate: IterationEstimate) -> Iterator[Finding]:
    """Why the machine's memory is too small, or may be; nothing where either is unknown."""
    offer, need = plan.offer, host_bytes(estimate)
    known = None if offer is None else load_instances().get((offer.provider, offer.instance_type))
    if need is None or known is None or known.memory_bytes is None:
        return
    fit = Fit.of(need, known.memory_bytes)
    if fit is Fit.NO:
        yield RemovedByHostMemory(needed_bytes=need.p50, available_bytes=known.memory_bytes)
    elif fit is Fit.LIKELY:
        yield HostMemoryTight(
            needed_bytes=need.p50, needed_p90_bytes=need.p90, available_bytes=known.memory_bytes
        )
