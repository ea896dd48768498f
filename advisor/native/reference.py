"""Occupancy and wave scaling in slow, clear Python: fallback without a compiler, and test oracle.

Shape suffixes: ``K`` kernels, ``G`` destination GPUs. Sources: occupancy as NVIDIA's CUDA Occupancy
Calculator and ``cuda_occupancy.h`` count it; wave scaling from Yu et al., "Habitat: A Runtime-Based
Computational Performance Predictor for Deep Neural Network Training", USENIX ATC'21, section on wave
scaling, and its published code for the small-kernel case.
"""

# ruff: noqa: N806 -- the capital letters are shape suffixes

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import OccupancyLimits
from advisor.native.arrays import (
    GpuArrays,
    KernelArrays,
    Unlaunchable,
    WaveForm,
    check_gpus,
    check_kernels,
    check_origin,
    limits_from_row,
)

MAX_THREADS_PER_BLOCK: Final = 1024
MAX_REGISTERS_PER_BLOCK: Final = 65_536
"""The same on every CUDA GPU, whatever an SM holds (Tegra has 32,768; we rent none)."""

LAUNCH_PARTITIONS: Final = 4
"""Partitions of an SM that the driver's launch check assumes."""

LARGE_WAVES: Final = 20
"""From this many full waves on both GPUs the large-wave form replaces the exact one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one kernel meets on one GPU; origin and destination are the two sides of a scaling."""

    num_sms: int
    wave_size: int
    base_clock_hz: float
    memory_bytes_per_s: float
    peak_flops_per_s: float


def resident_blocks(
    threads_per_block: int, registers_per_thread: int, shared_bytes: int, limits: OccupancyLimits
) -> int:
    """Thread blocks of a kernel that one SM holds at the same time; 0 if it cannot launch at all.

    The least of what threads, block slots, registers and shared memory allow. Threads and registers are
    given out by warp. A warp's registers round up to ``register_unit``; an SM's warps spread evenly over
    its ``warp_allocation_unit`` partitions, each with its own part of the register file. A block's shared
    memory, with what the driver reserves, rounds up to ``shared_unit_bytes``. Assumed is the largest
    shared-memory carve-out the SM offers.

    >>> from advisor.core.values import OccupancyLimits
    >>> v100 = OccupancyLimits(
    ...     max_threads=2048, max_blocks=32, max_registers=65536, max_registers_per_thread=255,
    ...     max_shared_bytes=98304, max_shared_bytes_per_block=98304,
    ...     reserved_shared_bytes_per_block=0, register_unit=256, shared_unit_bytes=256,
    ...     warp_allocation_unit=4)
    >>> resident_blocks(256, 32, 0, v100)  # 2048 threads / 256
    8
    >>> resident_blocks(256, 64, 0, v100)  # 65536 registers / (64 * 256)
    4
    """
    if threads_per_block > min(MAX_THREADS_PER_BLOCK, limits.max_threads):
        return 0
    warps_per_block = -(-threads_per_block // limits.warp_size)
    max_warps = limits.max_threads // limits.warp_size
    return min(
        max_warps // warps_per_block,
        limits.max_blocks,
        _blocks_by_registers(warps_per_block, registers_per_thread, limits),
        _blocks_by_shared_memory(shared_bytes, limits),
    )


def occupancy(threads_per_block: int, num_resident_blocks: int, limits: OccupancyLimits) -> float:
    """Resident warps / warps the SM could hold, 0..1 (NVIDIA's theoretical occupancy)."""
    warps_per_block = -(-threads_per_block // limits.warp_size)
    return num_resident_blocks * warps_per_block / (limits.max_threads // limits.warp_size)


def memory_weight(intensity_flops_per_byte: float, ridge_flops_per_byte: float) -> float:
    """g, the weight of memory bandwidth against computation: 1 memory-bound ... 0 compute-bound.

    With arithmetic intensity x and the destination's ridge point R = peak FLOP/s / bandwidth:
    ``g = 1 - x / 2R`` for x < R, else ``R / 2x``; 1 where x is not known (NaN).

    >>> memory_weight(5.0, 10.0), memory_weight(20.0, 10.0), memory_weight(math.nan, 10.0)
    (0.75, 0.25, 1.0)
    """
    if math.isnan(intensity_flops_per_byte):
        return 1.0
    if intensity_flops_per_byte < ridge_flops_per_byte:
        return 1.0 - intensity_flops_per_byte / (2.0 * ridge_flops_per_byte)
    return ridge_flops_per_byte / (2.0 * intensity_flops_per_byte)


def scale_factor(blocks: int, g: float, origin: Side, destination: Side, form: WaveForm) -> float:
    """Time on the destination / time on the origin; ``scale_kernels`` has the formulas."""
    if form is WaveForm.AUTO:
        if blocks < origin.wave_size and blocks < destination.wave_size:
            return _small_factor(blocks, g, origin, destination)
        num_full_waves = blocks // max(origin.wave_size, destination.wave_size)
        form = WaveForm.LARGE if num_full_waves >= LARGE_WAVES else WaveForm.EXACT
    if form is WaveForm.LARGE:
        return _large_factor(g, origin, destination)
    return _exact_factor(blocks, g, origin, destination)


def count_resident_blocks(kernels: KernelArrays, gpus: GpuArrays) -> NDArray[np.int64]:
    """``resident_blocks`` of every kernel on every GPU, shape [K, G].

    Raises:
        ValueError: a launch or a limit is out of range; the message names it.
    """
    check_kernels(kernels)
    check_gpus(gpus)
    resident_KG = np.zeros((kernels.num_kernels, gpus.num_gpus), dtype=np.int64)
    limits = [limits_from_row(row_L) for row_L in gpus.limits_GL]
    for k in range(kernels.num_kernels):
        threads = int(kernels.threads_per_block_K[k])
        registers = int(kernels.registers_per_thread_K[k])
        shared_bytes = int(kernels.shared_bytes_K[k])
        for g in range(gpus.num_gpus):
            resident_KG[k, g] = resident_blocks(threads, registers, shared_bytes, limits[g])
    return resident_KG


def scale_kernels(
    kernels: KernelArrays,
    origin: GpuArrays,
    destinations: GpuArrays,
    *,
    form: WaveForm = WaveForm.AUTO,
    unlaunchable: Unlaunchable = Unlaunchable.RAISE,
) -> NDArray[np.float64]:
    """Seconds of every kernel on every destination by wave scaling, shape [K, G].

    A kernel of B thread blocks took T_o on the origin o and is wanted on the destination d. With the wave
    size W (SMs S x resident blocks of this kernel per SM), memory bandwidth D, base clock C and the weight
    g of ``memory_weight``::

        exact:  T_d = ceil(B/W_d) / ceil(B/W_o) * (D_o/D_d * W_d/W_o)^g * (C_o/C_d)^(1-g) * T_o
        large:  T_d = (D_o/D_d)^g * (W_o/W_d * C_o/C_d)^(1-g) * T_o
        small:  T_d = (C_o/C_d * ceil(B/S_d)/ceil(B/S_o))^(1-g) * T_o

    ``WaveForm.AUTO`` takes, kernel by kernel and destination by destination,

    - *small* where B < W_o and B < W_d: neither GPU is filled once, so residency and bandwidth, which
      assume full SMs, say nothing;
    - *large* where B >= 20 W (``LARGE_WAVES``) on both GPUs;
    - *exact* in between, where the tail effect of a last, partly filled wave matters.

    Exact / large lies between 1 / (1 + 1/n) and 1 + 1/n for n full waves, so the factor jumps by at most
    5 % where exact gives way to large; at the edge of small the jump has no such bound. The exact form has
    steps: more SMs or bandwidth can lengthen it. The large form is monotone in D, S and C at fixed g.
    ``WaveForm.EXACT`` and ``WaveForm.LARGE`` use that form for every pair.

    Args:
        kernels: measured on the origin.
        origin: exactly one GPU.
        destinations: G GPUs.
        form: which formula.
        unlaunchable: for a destination on which a kernel has no resident block (W_d = 0): raise, or NaN.

    Raises:
        ValueError: a quantity is out of range, or a kernel cannot be resident on the origin (W_o = 0) or,
            unless ``unlaunchable`` is NaN, on a destination; the message names it.
    """
    form, unlaunchable = WaveForm(form), Unlaunchable(unlaunchable)
    check_origin(origin)
    resident_KG = count_resident_blocks(kernels, destinations)
    resident_origin_K = count_resident_blocks(kernels, origin)[:, 0]
    time_s_KG = np.empty(resident_KG.shape, dtype=np.float64)
    for k in range(kernels.num_kernels):
        if resident_origin_K[k] == 0:
            raise ValueError(_not_resident(k, "the origin"))
        from_side = _side(origin, 0, int(resident_origin_K[k]))
        for g in range(destinations.num_gpus):
            to_side = _side(destinations, g, int(resident_KG[k, g]))
            if to_side.wave_size == 0 and unlaunchable is Unlaunchable.RAISE:
                raise ValueError(_not_resident(k, f"destination {g}"))
            time_s_KG[k, g] = _scale_kernel(kernels, k, from_side, to_side, form)
    return time_s_KG


def _scale_kernel(kernels: KernelArrays, k: int, origin: Side, destination: Side, form: WaveForm) -> float:
    if destination.wave_size == 0:
        return math.nan
    intensity = float(kernels.intensity_flops_per_byte_K[k])
    g = memory_weight(intensity, destination.peak_flops_per_s / destination.memory_bytes_per_s)
    factor = scale_factor(int(kernels.blocks_K[k]), g, origin, destination, form)
    return factor * float(kernels.duration_s_K[k])


def _blocks_by_registers(warps_per_block: int, registers_per_thread: int, limits: OccupancyLimits) -> int:
    if registers_per_thread == 0:
        return limits.max_blocks
    if registers_per_thread > limits.max_registers_per_thread:
        return 0
    unit = limits.register_unit
    registers_per_warp = -(-registers_per_thread * limits.warp_size // unit) * unit
    # The driver admits a launch as if every partition got equally many warps, for four partitions even
    # on the P100, which has two (cuda_occupancy.h: what no other Pascal runs, the P100 does not run).
    checked_warps = -(-warps_per_block // LAUNCH_PARTITIONS) * LAUNCH_PARTITIONS
    if checked_warps > MAX_REGISTERS_PER_BLOCK // registers_per_warp:
        return 0
    partitions = limits.warp_allocation_unit
    resident_warps = limits.max_registers // registers_per_warp // partitions * partitions
    return resident_warps // warps_per_block


def _blocks_by_shared_memory(shared_bytes: int, limits: OccupancyLimits) -> int:
    if shared_bytes > limits.max_shared_bytes_per_block:
        return 0
    unit = limits.shared_unit_bytes
    per_block = -(-(shared_bytes + limits.reserved_shared_bytes_per_block) // unit) * unit
    return limits.max_blocks if per_block == 0 else limits.max_shared_bytes // per_block


def _exact_factor(blocks: int, g: float, origin: Side, destination: Side) -> float:
    waves = _ceil_ratio(blocks, destination.wave_size, origin.wave_size)
    wave_size = destination.wave_size / origin.wave_size
    memory = origin.memory_bytes_per_s / destination.memory_bytes_per_s * wave_size
    clock = origin.base_clock_hz / destination.base_clock_hz
    return float(waves * memory**g * clock ** (1.0 - g))


def _large_factor(g: float, origin: Side, destination: Side) -> float:
    memory = origin.memory_bytes_per_s / destination.memory_bytes_per_s
    clock = origin.base_clock_hz / destination.base_clock_hz
    compute = origin.wave_size / destination.wave_size * clock
    return float(memory**g * compute ** (1.0 - g))


def _small_factor(blocks: int, g: float, origin: Side, destination: Side) -> float:
    clock = origin.base_clock_hz / destination.base_clock_hz
    turns = _ceil_ratio(blocks, destination.num_sms, origin.num_sms)
    return float((clock * turns) ** (1.0 - g))


def _ceil_ratio(blocks: int, destination_size: int, origin_size: int) -> float:
    return -(-blocks // destination_size) / -(-blocks // origin_size)


def _side(gpus: GpuArrays, g: int, num_resident_blocks: int) -> Side:
    num_sms = int(gpus.num_sms_G[g])
    return Side(
        num_sms=num_sms,
        wave_size=num_sms * num_resident_blocks,
        base_clock_hz=float(gpus.base_clock_hz_G[g]),
        memory_bytes_per_s=float(gpus.memory_bytes_per_s_G[g]),
        peak_flops_per_s=float(gpus.peak_flops_per_s_G[g]),
    )


def _not_resident(k: int, where: str) -> str:
    return f"wave size of kernel {k} is 0: no block of it can be resident on {where}"
