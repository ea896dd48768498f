"""Kernels and GPUs for the tests of the native code; limits written down from NVIDIA's documents."""

import importlib
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from advisor import native
from advisor.core.values import OccupancyLimits
from advisor.native import reference
from advisor.native.arrays import LIMIT_COLUMNS, GpuArrays, KernelArrays

KIB = 1024
needs_compiled = pytest.mark.skipif(
    not native.COMPILED, reason=f"the compiled module is missing: {native.WHY_NOT_COMPILED}"
)


def _backend(name: str) -> ModuleType:
    return importlib.import_module(f"advisor.native.{name}") if native.COMPILED else reference


BACKENDS = [
    pytest.param(reference, id="reference"),
    pytest.param(_backend("_native"), id="compiled", marks=needs_compiled),
]


def _limits(
    *, threads: int, blocks: int, registers: int, shared_kib: int, per_block_kib: int, partitions: int = 4
) -> OccupancyLimits:
    ampere_or_later = per_block_kib + 1 == shared_kib
    return OccupancyLimits(
        max_threads=threads,
        max_blocks=blocks,
        max_registers=registers,
        max_registers_per_thread=255,
        max_shared_bytes=shared_kib * KIB,
        max_shared_bytes_per_block=per_block_kib * KIB,
        reserved_shared_bytes_per_block=KIB if ampere_or_later else 0,
        register_unit=256,
        shared_unit_bytes=128 if ampere_or_later else 256,
        warp_allocation_unit=partitions,
    )


# CUDA C++ Programming Guide, technical specifications per compute capability; the Kepler (GK210), Volta,
# Turing, Ampere, Ada and Hopper tuning guides; partitions and units from cuda_occupancy.h.
LIMITS = {
    "3.7": _limits(threads=2048, blocks=16, registers=131_072, shared_kib=112, per_block_kib=48),
    "5.2": _limits(threads=2048, blocks=32, registers=65_536, shared_kib=96, per_block_kib=48),
    "6.0": _limits(threads=2048, blocks=32, registers=65_536, shared_kib=64, per_block_kib=48, partitions=2),
    "6.1": _limits(threads=2048, blocks=32, registers=65_536, shared_kib=96, per_block_kib=48),
    "7.0": _limits(threads=2048, blocks=32, registers=65_536, shared_kib=96, per_block_kib=96),
    "7.5": _limits(threads=1024, blocks=16, registers=65_536, shared_kib=64, per_block_kib=64),
    "8.0": _limits(threads=2048, blocks=32, registers=65_536, shared_kib=164, per_block_kib=163),
    "8.6": _limits(threads=1536, blocks=16, registers=65_536, shared_kib=100, per_block_kib=99),
    "8.9": _limits(threads=1536, blocks=24, registers=65_536, shared_kib=100, per_block_kib=99),
    "9.0": _limits(threads=2048, blocks=32, registers=65_536, shared_kib=228, per_block_kib=227),
}


def make_gpus(*gpus: dict[str, Any]) -> GpuArrays:
    """GPUs of round numbers: 80 SMs of 2,048 threads, 1 GHz, 1 TB/s, ridge point 10 FLOP/byte."""
    default: dict[str, Any] = {"sms": 80, "clock": 1e9, "bandwidth": 1e12, "peak": 1e13, "cc": "7.0"}
    rows = [default | gpu for gpu in gpus]
    limits = [[getattr(LIMITS[row["cc"]], column) for column in LIMIT_COLUMNS] for row in rows]
    return GpuArrays(
        num_sms_G=np.array([row["sms"] for row in rows], dtype=np.int64),
        base_clock_hz_G=np.array([row["clock"] for row in rows], dtype=np.float64),
        memory_bytes_per_s_G=np.array([row["bandwidth"] for row in rows], dtype=np.float64),
        peak_flops_per_s_G=np.array([row["peak"] for row in rows], dtype=np.float64),
        limits_GL=np.array(limits, dtype=np.int64).reshape(len(rows), len(LIMIT_COLUMNS)),
    )


def make_kernels(*kernels: dict[str, Any]) -> KernelArrays:
    """Kernels of 256 threads and 32 registers, 1 ms, of unknown intensity: 8 resident blocks on 7.0."""
    default: dict[str, Any] = {
        "blocks": 100_000, "threads": 256, "registers": 32, "shared": 0, "duration": 1e-3,
        "intensity": math.nan,
    }  # fmt: skip
    rows = [default | kernel for kernel in kernels]

    def column(key: str, dtype: type) -> np.ndarray:
        return np.array([row[key] for row in rows], dtype=dtype)

    return KernelArrays(
        blocks_K=column("blocks", np.int64),
        threads_per_block_K=column("threads", np.int64),
        registers_per_thread_K=column("registers", np.int64),
        shared_bytes_K=column("shared", np.int64),
        duration_s_K=column("duration", np.float64),
        intensity_flops_per_byte_K=column("intensity", np.float64),
    )


def random_kernels(rng: np.random.Generator, num_kernels: int) -> KernelArrays:
    """Launches such as profilers see; every one fits any GPU of ``LIMITS``."""
    size = num_kernels
    threads_K = rng.choice(np.array([32, 64, 128, 192, 256, 288, 512]), size)  # noqa: N806
    return KernelArrays(
        blocks_K=rng.integers(1, 50, size) * 10 ** rng.integers(0, 5, size),
        threads_per_block_K=threads_K,
        registers_per_thread_K=rng.integers(8, 97, size),
        shared_bytes_K=rng.integers(0, 3, size) * rng.integers(0, 16 * KIB, size),
        duration_s_K=10 ** rng.uniform(-6, -2, size),
        intensity_flops_per_byte_K=np.where(rng.random(size) < 0.3, np.nan, 10 ** rng.uniform(-1, 3, size)),
    )


def random_gpus(rng: np.random.Generator, num_gpus: int) -> GpuArrays:
    """Between a laptop card and a data-centre GPU, of any compute capability in ``LIMITS``."""
    return make_gpus(
        *(
            {
                "sms": int(rng.integers(5, 170)),
                "clock": rng.uniform(0.5e9, 2.5e9),
                "bandwidth": rng.uniform(0.1e12, 8e12),
                "peak": rng.uniform(1e12, 1e14),
                "cc": str(rng.choice(list(LIMITS))),
            }
            for _ in range(num_gpus)
        )
    )
