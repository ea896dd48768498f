"""What a plan's machines have to feed its GPUs with."""

from __future__ import annotations

from advisor.core.values import Plan
from advisor.predict.loading import ASSUMED_VCPUS_PER_GPU


def vcpus_per_gpu(plan: Plan) -> float:
    """Number of vCPUs for each GPU; where nobody knows them, an assumption."""
    return plan.vcpus_per_gpu or ASSUMED_VCPUS_PER_GPU
