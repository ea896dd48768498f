"""The IterationEstimates that a list of plans needs, each made once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.predict import predict_counts
from advisor.types import GpuSpec, IterationEstimate, Plan, Trace


def estimates_for(
    trace: Trace, plans: Iterable[Plan], gpus: Mapping[str, GpuSpec]
) -> dict[tuple[str, int], IterationEstimate]:
    """By (GPU name, number of GPUs)."""
    counts: dict[str, set[int]] = {}
    for plan in plans:
        counts.setdefault(plan.gpu, set()).add(plan.num_gpus)
    return {
        (name, estimate.num_gpus): estimate
        for name, wanted in counts.items()
        for estimate in predict_counts(trace, gpus[name], sorted(wanted))
    }
