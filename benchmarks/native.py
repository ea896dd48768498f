"""Wave scaling of 8,772 kernels (the V100 trace in ../shared has as many) on 50 GPUs, three ways.

The numpy version lives here alone, to say what compiling is worth; like the others it counts resident
blocks first. Shape suffixes: ``K`` kernels, ``G`` GPUs.
"""

# ruff: noqa: N806 -- the capital letters are shape suffixes

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from advisor import native
from advisor.native import reference
from advisor.native.arrays import LIMIT_COLUMNS, GpuArrays, KernelArrays

NUM_KERNELS = 8_772
NUM_GPUS = 50
RUNS = 9


def count_resident_blocks(kernels: KernelArrays, gpus: GpuArrays) -> NDArray[np.int64]:
    """``reference.count_resident_blocks`` with every step over [K, G]."""
    limit = {name: gpus.limits_GL[:, i] for i, name in enumerate(LIMIT_COLUMNS)}
    threads_K1 = kernels.threads_per_block_K[:, None]
    registers_K1 = kernels.registers_per_thread_K[:, None]
    shared_K1 = kernels.shared_bytes_K[:, None]
    warps_KG = -(-threads_K1 // limit["warp_size"])
    unit_G = limit["register_unit"]
    per_warp_KG = np.maximum(-(-registers_K1 * limit["warp_size"] // unit_G) * unit_G, 1)
    parts_G = limit["warp_allocation_unit"]
    by_registers_KG = limit["max_registers"] // per_warp_KG // parts_G * parts_G // warps_KG
    block_unit_G = limit["shared_unit_bytes"]
    reserved_KG = shared_K1 + limit["reserved_shared_bytes_per_block"]
    per_block_KG = np.maximum(-(-reserved_KG // block_unit_G) * block_unit_G, 1)
    resident_KG = np.minimum(limit["max_threads"] // limit["warp_size"] // warps_KG, limit["max_blocks"])
    resident_KG = np.minimum(resident_KG, np.where(registers_K1 == 0, resident_KG, by_registers_KG))
    resident_KG = np.minimum(resident_KG, limit["max_shared_bytes"] // per_block_KG)
    launches_KG = (
        (threads_K1 <= np.minimum(reference.MAX_THREADS_PER_BLOCK, limit["max_threads"]))
        & (registers_K1 <= limit["max_registers_per_thread"])
        & (shared_K1 <= limit["max_shared_bytes_per_block"])
        & (-(-warps_KG // 4) * 4 <= reference.MAX_REGISTERS_PER_BLOCK // per_warp_KG)
    )
    return np.where(launches_KG, resident_KG, 0)


def scale_kernels(kernels: KernelArrays, origin: GpuArrays, gpus: GpuArrays) -> NDArray[np.float64]:
    """``reference.scale_kernels`` with every form over [K, G], then a choice."""
    blocks_K1 = kernels.blocks_K[:, None]
    wave_o_K1 = count_resident_blocks(kernels, origin) * origin.num_sms_G
    wave_d_KG = count_resident_blocks(kernels, gpus) * gpus.num_sms_G
    ridge_G = gpus.peak_flops_per_s_G / gpus.memory_bytes_per_s_G
    x_K1 = kernels.intensity_flops_per_byte_K[:, None]
    g_KG = np.where(x_K1 < ridge_G, 1 - x_K1 / (2 * ridge_G), ridge_G / (2 * x_K1))
    g_KG = np.where(np.isnan(x_K1), 1.0, g_KG)
    memory_G = origin.memory_bytes_per_s_G / gpus.memory_bytes_per_s_G
    clock_G = origin.base_clock_hz_G / gpus.base_clock_hz_G
    wave_KG = wave_d_KG / wave_o_K1
    turns_KG = -(-blocks_K1 // gpus.num_sms_G) / -(-blocks_K1 // origin.num_sms_G)
    waves_KG = -(-blocks_K1 // wave_d_KG) / -(-blocks_K1 // wave_o_K1)
    small_KG = (clock_G * turns_KG) ** (1 - g_KG)
    large_KG = memory_G**g_KG * (clock_G / wave_KG) ** (1 - g_KG)
    exact_KG = waves_KG * (memory_G * wave_KG) ** g_KG * clock_G ** (1 - g_KG)
    is_small_KG = (blocks_K1 < wave_o_K1) & (blocks_K1 < wave_d_KG)
    is_large_KG = blocks_K1 // np.maximum(wave_o_K1, wave_d_KG) >= reference.LARGE_WAVES
    factor_KG: NDArray[np.float64] = np.where(is_large_KG, large_KG, exact_KG)
    factor_KG = np.where(is_small_KG, small_KG, factor_KG)
    return factor_KG * kernels.duration_s_K[:, None]


def wall_s(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Check that the three agree, then print their ratios."""
    from tests.unit.native.samples import random_gpus, random_kernels

    rng = np.random.default_rng(2021)
    kernels = random_kernels(rng, NUM_KERNELS)
    origin, gpus = random_gpus(rng, 1), random_gpus(rng, NUM_GPUS)
    expected_KG = reference.scale_kernels(kernels, origin, gpus)
    np.testing.assert_allclose(scale_kernels(kernels, origin, gpus), expected_KG, rtol=1e-9)
    np.testing.assert_allclose(native.scale_kernels(kernels, origin, gpus), expected_KG, rtol=1e-9)
    name = "native" if native.COMPILED else "native (not compiled)"
    # In turn, so that a slow minute of the machine hits all of them.
    times_s = [
        (
            wall_s(lambda: native.scale_kernels(kernels, origin, gpus)),
            wall_s(lambda: scale_kernels(kernels, origin, gpus)),
        )
        for _ in range(RUNS)
    ]
    reference_s = wall_s(lambda: reference.scale_kernels(kernels, origin, gpus))
    native_s = statistics.median(a for a, _ in times_s)
    by_numpy = statistics.median(b / a for a, b in times_s)
    print(f"wave scaling of {NUM_KERNELS} kernels x {NUM_GPUS} GPUs: {name} {native_s * 1e3:.1f} ms")
    print(f"{'numpy / ' + name:<34}{by_numpy:6.1f} x")
    print(f"{'reference / ' + name:<34}{reference_s / native_s:6.1f} x")


if __name__ == "__main__":
    main()
