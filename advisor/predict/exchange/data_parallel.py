"""Data parallelism on one node: ring all-reduce of the gradients, partly hidden behind backward.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009: N GPUs move
``2 (N - 1) / N`` of the gradient bytes each. PyTorch DDP (Li et al., VLDB 2020) reduces buckets as
backward fills them, so that all but the last bucket can overlap.
"""

from __future__ import annotations

from advisor.core.units import MIB
from advisor.core.values import GpuSpec

COMMUNICATION = "exposed communication"
"""What takes time beside operators and waits, where times are listed by name."""
DDP_BUCKET_BYTES = 25 * MIB
# NCCL reaches about these shares of a link's rate with large messages.
NVLINK_FRACTION = 0.75
PCIE_FRACTION = 0.55
# Communication kernels take SMs and bandwidth from backward, so it hides only this share of it.
OVERLAP_FRACTION = 0.7
ALL_REDUCE_LATENCY_S = 30e-6


def link_bytes_per_s(gpu: GpuSpec) -> float:
    """Bytes per second and direction between GPUs of one node."""
    if gpu.nvlink_bytes_per_s:
        return NVLINK_FRACTION * gpu.nvlink_bytes_per_s
    return PCIE_FRACTION * gpu.pcie_bytes_per_s


def all_reduce_s(num_bytes: float, num_gpus: int, bytes_per_s: float) -> float:
    """Seconds of one ring all-reduce over ``num_gpus``.

    >>> all_reduce_s(1e9, 1, 1e9)
    0.0
    """
    if num_gpus == 1:
        return 0.0
    return ALL_REDUCE_LATENCY_S + 2 * (num_gpus - 1) / num_gpus * num_bytes / bytes_per_s


def exposed_communication_s(gradient_bytes: int, backward_s: float, gpu: GpuSpec, num_gpus: int) -> float:
    """Seconds of all-reduce that backward does not hide: at least the last bucket."""
    if num_gpus == 1:
        return 0.0
    rate = link_bytes_per_s(gpu)
    total_s = all_reduce_s(gradient_bytes, num_gpus, rate)
    last_s = all_reduce_s(min(gradient_bytes, DDP_BUCKET_BYTES), num_gpus, rate)
    return max(last_s, total_s - OVERLAP_FRACTION * backward_s)
