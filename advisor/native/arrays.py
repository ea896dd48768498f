"""Kernels and GPUs as columns of numbers, the form in which the native code takes them.

Shape suffixes: ``K`` kernels, ``G`` GPUs, ``L`` occupancy limits in the order of ``LIMIT_COLUMNS``.
Ranges of what the reference takes are checked here; the C++ core checks the same and words it the same, and
checks types and lengths as well.
"""
# ruff: noqa: N803, N806, N815 -- the capital letters are shape suffixes

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Kernel, OccupancyLimits

LIMIT_COLUMNS: Final = (
    "max_threads", "max_blocks", "max_registers", "max_registers_per_thread", "max_shared_bytes",
    "max_shared_bytes_per_block", "reserved_shared_bytes_per_block", "register_unit", "shared_unit_bytes",
    "warp_allocation_unit", "warp_size",
)  # fmt: skip
"""Columns of ``GpuArrays.limits_GL``; the C++ core reads them in this order."""

ASSUMED_REGISTERS_PER_THREAD: Final = 32
"""Stands in for an unknown register count: the most that lets 2,048 threads share 65,536 registers,
so registers never limit occupancy on data-centre GPUs."""

ASSUMED_SHARED_BYTES: Final = 0
"""Stands in for unknown shared memory: none, so that it never limits occupancy."""


class WaveForm(StrEnum):
    """Which form of wave scaling to use; ``reference.scale_kernels`` says when each is right."""

    AUTO = "auto"
    EXACT = "exact"
    LARGE = "large"


class Unlaunchable(StrEnum):
    """What becomes of a kernel that a destination cannot launch: a ValueError, or NaN for the pair."""

    RAISE = "raise"
    NAN = "nan"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelArrays:
    """K kernels, one array a quantity, all of length K and C-contiguous."""

    blocks_K: NDArray[np.int64]
    """Thread blocks of the launch (the product of its grid), int64."""
    threads_per_block_K: NDArray[np.int64]
    """The product of its block, int64."""
    registers_per_thread_K: NDArray[np.int64]
    shared_bytes_K: NDArray[np.int64]
    """Static and dynamic shared memory of a block, int64."""
    duration_s_K: NDArray[np.float64]
    """Measured on the origin GPU, float64."""
    intensity_flops_per_byte_K: NDArray[np.float64]
    """Arithmetic intensity, NaN where it is not known, float64."""

    @property
    def num_kernels(self) -> int:
        """K."""
        return len(self.blocks_K)

    @classmethod
    def from_kernels(
        cls, kernels: Sequence[Kernel], *, intensity_flops_per_byte: Sequence[float | None] | None = None
    ) -> KernelArrays:
        """Pack profiled kernels; what the profiler did not say becomes the ``ASSUMED_...`` constants.

        Count ``not has_known_resources(kernel)`` to tell the user how many kernels rest on them.

        Args:
            kernels: K kernels.
            intensity_flops_per_byte: K values, None or NaN where not known; by default all unknown.
        """
        intensity = intensity_flops_per_byte
        if intensity is None:
            intensity = [None] * len(kernels)
        return cls(
            blocks_K=_int64(math.prod(k.grid) for k in kernels),
            threads_per_block_K=_int64(math.prod(k.block) for k in kernels),
            registers_per_thread_K=_int64(
                _known(k.registers_per_thread, ASSUMED_REGISTERS_PER_THREAD) for k in kernels
            ),
            shared_bytes_K=_int64(_known(k.shared_bytes, ASSUMED_SHARED_BYTES) for k in kernels),
            duration_s_K=np.array([k.duration_s for k in kernels], dtype=np.float64),
            # numpy takes None for NaN.
            intensity_flops_per_byte_K=np.array(intensity, dtype=np.float64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GpuArrays:
    """G GPUs, one array a quantity, all with G rows and C-contiguous."""

    num_sms_G: NDArray[np.int64]
    base_clock_hz_G: NDArray[np.float64]
    memory_bytes_per_s_G: NDArray[np.float64]
    peak_flops_per_s_G: NDArray[np.float64]
    """The peak that with the bandwidth makes the ridge point, float64."""
    limits_GL: NDArray[np.int64]
    """What an SM can hold, columns by ``LIMIT_COLUMNS``, int64."""

    @property
    def num_gpus(self) -> int:
        """G."""
        return len(self.num_sms_G)

    @classmethod
    def from_specs(
        cls, specs: Sequence[GpuSpec], *, peak_flops_per_s: Callable[[GpuSpec], float] | None = None
    ) -> GpuArrays:
        """Pack catalog entries.

        Args:
            specs: G GPUs.
            peak_flops_per_s: the peak for the ridge point, by default FP32 without tensor cores. Pass
                another for kernels that run on tensor cores.

        Raises ValueError: a GPU has no occupancy limits (it is not a CUDA device) or no FP32 peak.
        """
        peak = peak_flops_per_s or _fp32_flops_per_s
        limits = [limits_row(spec) for spec in specs]
        return cls(
            num_sms_G=np.array([s.num_sms for s in specs], dtype=np.int64),
            base_clock_hz_G=np.array([s.base_clock_hz for s in specs], dtype=np.float64),
            memory_bytes_per_s_G=np.array([s.memory_bytes_per_s for s in specs], dtype=np.float64),
            peak_flops_per_s_G=np.array([peak(s) for s in specs], dtype=np.float64),
            limits_GL=np.array(limits, dtype=np.int64).reshape(len(specs), len(LIMIT_COLUMNS)),
        )


def has_known_resources(kernel: Kernel) -> bool:
    """Whether the profiler recorded both registers and shared memory, so occupancy is no guess."""
    return kernel.registers_per_thread is not None and kernel.shared_bytes is not None


def limits_row(spec: GpuSpec) -> tuple[int, ...]:
    """The occupancy limits of a GPU in the order of ``LIMIT_COLUMNS``."""
    if spec.occupancy is None:
        raise ValueError(f"{spec.name} has no occupancy limits: wave scaling covers CUDA GPUs only")
    return tuple(getattr(spec.occupancy, column) for column in LIMIT_COLUMNS)


def limits_from_row(row_L: NDArray[np.int64]) -> OccupancyLimits:
    """The inverse of ``limits_row``."""
    return OccupancyLimits(**dict(zip(LIMIT_COLUMNS, map(int, row_L), strict=True)))


def _fp32_flops_per_s(spec: GpuSpec) -> float:
    if "fp32" not in spec.vector_flops_per_s:
        raise ValueError(f"{spec.name} has no fp32 peak in vector_flops_per_s: pass peak_flops_per_s")
    return spec.vector_flops_per_s["fp32"]


def _known(value: int | None, assumed: int) -> int:
    return assumed if value is None else value


def _int64(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)


MAX_COUNT: Final = 2**31 - 1
"""Bound of SM counts and occupancy limits: products of two fit 64 bits."""

MAY_BE_ZERO: Final = frozenset(
    {"max_shared_bytes", "max_shared_bytes_per_block", "reserved_shared_bytes_per_block"}
)


def check_kernels(kernels: KernelArrays) -> None:
    """Raise ValueError for the first kernel with an impossible launch, time or intensity."""
    intensity_K = kernels.intensity_flops_per_byte_K
    leasts = {"blocks": 1, "threads_per_block": 1, "registers_per_thread": 0, "shared_bytes": 0}
    for name, least in leasts.items():
        value_K = getattr(kernels, f"{name}_K")
        _refuse(name, "kernel", value_K, value_K < least, f"must be {least} or more")
    bad_K = ~(np.isfinite(kernels.duration_s_K) & (kernels.duration_s_K >= 0))
    _refuse("duration_s", "kernel", kernels.duration_s_K, bad_K, "must be finite, 0 or more")
    # An infinite intensity is a kernel that touches no device memory: g = 0.
    _refuse("intensity_flops_per_byte", "kernel", intensity_K, intensity_K < 0, "must be 0 or more")


def check_gpus(gpus: GpuArrays) -> None:
    """Raise ValueError for the first GPU with an impossible quantity or limit."""
    _check_count("num_sms", gpus.num_sms_G, 1)
    for name in ("base_clock_hz", "memory_bytes_per_s", "peak_flops_per_s"):
        value_G = getattr(gpus, f"{name}_G")
        bad_G = ~(np.isfinite(value_G) & (value_G > 0))
        _refuse(name, "GPU", value_G, bad_G, "must be finite and positive")
    for column, name in enumerate(LIMIT_COLUMNS):
        _check_count(name, gpus.limits_GL[:, column], 0 if name in MAY_BE_ZERO else 1)


def check_origin(origin: GpuArrays) -> None:
    """Raise ValueError unless the origin is one GPU."""
    if origin.num_gpus != 1:
        raise ValueError(f"num_gpus of origin is {origin.num_gpus}: must be 1")


def _check_count(name: str, value_G: NDArray[np.int64], least: int) -> None:
    bad_G = (value_G < least) | (value_G > MAX_COUNT)
    _refuse(name, "GPU", value_G, bad_G, f"must be {least} to {MAX_COUNT}")


def _refuse(
    name: str, noun: str, values: NDArray[np.int64] | NDArray[np.float64], bad: NDArray[np.bool_], rule: str
) -> None:
    indices = np.flatnonzero(bad)
    if indices.size:
        index = int(indices[0])
        raise ValueError(f"{name} of {noun} {index} is {values[index]}: {rule}")


# A cluster's queue as columns of numbers, the form in which its simulation takes it.
#
# Shape suffixes: ``J`` jobs, ``K`` probes, ``P`` partitions, ``Q`` pools. A pool holds the units (GPUs, nodes
# or cores) of all partitions that share nodes. Times are whole seconds of one clock.


Column = NDArray[np.int64]
MAX_TIME_S: Final = 2**40
"""Bound of times and units; sums of a million fit 64 bits."""


class Backfill(StrEnum):
    """Which jobs may start before one that was due earlier.

    NONE: none of those that wait for the same units. EASY: those that do not delay the reservation of the
    first. CONSERVATIVE: those that delay no reservation.
    """

    NONE = "none"
    EASY = "easy"
    CONSERVATIVE = "conservative"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobColumns:
    """J jobs in order of submission, one int64 array a quantity; the scheduler knows all but ``run_s_J``."""

    submit_s_J: Column
    run_s_J: Column
    walltime_s_J: Column
    size_J: Column
    partition_J: Column
    user_J: Column

    @property
    def columns(self) -> tuple[Column, ...]:
        """In the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def of(cls, rows: list[tuple[int, ...]]) -> JobColumns:
        """Of rows with the values of a job in the order of the fields."""
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(fields(cls)))
        names = (field.name for field in fields(cls))
        return cls(**{name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterColumns:
    """P partitions on Q pools."""

    units_P: Column
    """Units that the jobs of a partition may use at once."""
    pool_P: Column
    """Which pool they are of."""
    tier_P: Column
    """Jobs of a higher tier come first, whatever their priority."""
    job_factor_P: NDArray[np.float64]
    """0 to 1, what ``partition_weight`` is multiplied by."""
    units_Q: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityRules:
    """How Slurm's priority/multifactor ranks jobs; all weights 0 is first come, first served."""

    age_weight: float = 0.0
    size_weight: float = 0.0
    fair_share_weight: float = 0.0
    partition_weight: float = 0.0
    max_age_s: float = 7 * 86_400.0
    """The wait from which the age counts fully."""
    half_life_s: float = 7 * 86_400.0
    """Of usage in the fair share; 0 forgets nothing."""
    period_s: int = 300
    """How often priorities of waiting jobs are computed again."""
    favors_small: bool = False
    """Whether the size factor is 1 for the smallest job rather than for the largest."""
    is_fair_tree: bool = True
    """Whether users are ranked by usage; otherwise the factor is 2^-(usage / share)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queue:
    """What is simulated; each of the K probes joins the jobs alone, and disturbs no other probe.

    Raises:
        ValueError: a job that never fits, runs longer than it asks for or names no partition, and the like.
    """

    jobs: JobColumns
    probes: JobColumns
    cluster: ClusterColumns
    rules: PriorityRules
    backfill: Backfill

    def __post_init__(self) -> None:
        cluster, rules = self.cluster, self.rules
        columns = cluster.units_P, cluster.pool_P, cluster.tier_P, cluster.job_factor_P
        if len(set(map(len, columns))) != 1:
            raise ValueError("columns of partitions differ in length")
        pool_P, units_Q = cluster.pool_P, cluster.units_Q
        _refuse_rows("partition", (pool_P < 0) | (pool_P >= len(units_Q)), "is of no pool")
        _refuse_rows("partition", cluster.units_P > units_Q[pool_P], "has more units than its pool")
        _refuse_rows("pool", units_Q > MAX_TIME_S, "has too many units")
        if min(rules.max_age_s, rules.period_s) <= 0 or not 0 <= rules.half_life_s <= MAX_TIME_S:
            raise ValueError("max_age_s and period_s must be positive, half_life_s 0 or more")
        for noun, jobs in (("job", self.jobs), ("probe", self.probes)):
            _check_jobs(noun, jobs, cluster)

    @property
    def num_users(self) -> int:
        """Users are numbered from 0."""
        return 1 + int(np.concatenate([self.jobs.user_J, self.probes.user_J]).max(initial=-1))


def _check_jobs(noun: str, jobs: JobColumns, cluster: ClusterColumns) -> None:
    if len({len(column) for column in jobs.columns}) != 1:
        raise ValueError(f"columns of {noun}s differ in length")
    partition_J = jobs.partition_J
    _refuse_rows(noun, (partition_J < 0) | (partition_J >= len(cluster.units_P)), "names no partition")
    _refuse_rows(
        noun, (jobs.size_J < 1) | (jobs.size_J > cluster.units_P[partition_J]), "never fits its partition"
    )
    _refuse_rows(noun, abs(jobs.submit_s_J) > MAX_TIME_S, "is submitted at no time")
    _refuse_rows(noun, np.diff(jobs.submit_s_J) < 0, "is submitted after the next one")
    _refuse_rows(noun, (jobs.walltime_s_J < 1) | (jobs.walltime_s_J > MAX_TIME_S), "asks for no run time")
    _refuse_rows(
        noun, (jobs.run_s_J < 0) | (jobs.run_s_J > jobs.walltime_s_J), "runs longer than it asks for"
    )
    _refuse_rows(noun, (jobs.user_J < 0) | (jobs.user_J >= 2**31), "has no user")


def _refuse_rows(noun: str, is_bad: NDArray[np.bool_], what: str) -> None:
    if is_bad.any():
        raise ValueError(f"{noun} {int(np.argmax(is_bad))} {what}")
