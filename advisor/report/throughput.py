"""Samples a second and model FLOPs utilization, for people."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.values import IterationEstimate
from advisor.report.document import Fact


def throughput_facts(estimate: IterationEstimate) -> Iterator[Fact]:
    """A line each, of what is known."""
    rate, mfu, peak = estimate.samples_per_s, estimate.mfu, estimate.work.peak_flops_per_s
    if rate is not None:
        yield Fact("samples per second", f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}", _of_gpus(estimate))
    if mfu is not None and peak is not None:
        yield Fact("MFU", f"{mfu:.1%}", f"model FLOPs utilization, of {peak / 1e12:,.4g} TFLOP/s a GPU")


def _of_gpus(estimate: IterationEstimate) -> str:
    return "" if estimate.num_gpus == 1 else f"of all {estimate.num_gpus} GPUs"
