"""Ranges of what the reference takes; the C++ core checks the same and words it the same."""

# ruff: noqa: N803, N806 -- the capital letters are shape suffixes

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from advisor.native.arrays import LIMIT_COLUMNS, GpuArrays, KernelArrays

MAX_COUNT: Final = 2**31 - 1
"""Bound of SM counts and occupancy limits: products of two fit 64 bits."""

MAY_BE_ZERO: Final = frozenset(
    {"max_shared_bytes", "max_shared_bytes_per_block", "reserved_shared_bytes_per_block"}
)


def check_kernels(kernels: KernelArrays) -> None:
    """Raise ValueError for the first kernel with an impossible launch, time or intensity."""
    intensity_K = kernels.intensity_flops_per_byte_K
    _check_least("blocks", kernels.blocks_K, 1)
    _check_least("threads_per_block", kernels.threads_per_block_K, 1)
    _check_least("registers_per_thread", kernels.registers_per_thread_K, 0)
    _check_least("shared_bytes", kernels.shared_bytes_K, 0)
    bad_K = ~(np.isfinite(kernels.duration_s_K) & (kernels.duration_s_K >= 0))
    _refuse("duration_s", "kernel", kernels.duration_s_K, bad_K, "must be finite, 0 or more")
    # An infinite intensity is a kernel that touches no device memory: g = 0.
    _refuse("intensity_flops_per_byte", "kernel", intensity_K, intensity_K < 0, "must be 0 or more")


def check_gpus(gpus: GpuArrays) -> None:
    """Raise ValueError for the first GPU with an impossible quantity or limit."""
    _check_count("num_sms", gpus.num_sms_G, 1)
    _check_positive("base_clock_hz", gpus.base_clock_hz_G)
    _check_positive("memory_bytes_per_s", gpus.memory_bytes_per_s_G)
    _check_positive("peak_flops_per_s", gpus.peak_flops_per_s_G)
    for column, name in enumerate(LIMIT_COLUMNS):
        _check_count(name, gpus.limits_GL[:, column], 0 if name in MAY_BE_ZERO else 1)


def check_origin(origin: GpuArrays) -> None:
    """Raise ValueError unless the origin is one GPU."""
    if origin.num_gpus != 1:
        message = f"num_gpus of origin is {origin.num_gpus}: must be 1"
        raise ValueError(message)


def _check_least(name: str, value_K: NDArray[np.int64], least: int) -> None:
    _refuse(name, "kernel", value_K, value_K < least, f"must be {least} or more")


def _check_count(name: str, value_G: NDArray[np.int64], least: int) -> None:
    bad_G = (value_G < least) | (value_G > MAX_COUNT)
    _refuse(name, "GPU", value_G, bad_G, f"must be {least} to {MAX_COUNT}")


def _check_positive(name: str, value_G: NDArray[np.float64]) -> None:
    bad_G = ~(np.isfinite(value_G) & (value_G > 0))
    _refuse(name, "GPU", value_G, bad_G, "must be finite and positive")


def _refuse(
    name: str, noun: str, values: NDArray[np.int64] | NDArray[np.float64], bad: NDArray[np.bool_], rule: str
) -> None:
    indices = np.flatnonzero(bad)
    if indices.size:
        index = int(indices[0])
        message = f"{name} of {noun} {index} is {values[index]}: {rule}"
        raise ValueError(message)
