"""Occupancy, wave scaling and a cluster's queue: compiled, or the Python reference with the same signatures.

``COMPILED`` says which; without a C++ compiler at installation it is the reference, and
``WHY_NOT_COMPILED`` holds the import error for ``advisor doctor``.
"""

from advisor.native.arrays import (
    ASSUMED_REGISTERS_PER_THREAD,
    ASSUMED_SHARED_BYTES,
    LIMIT_COLUMNS,
    Backfill,
    ClusterColumns,
    GpuArrays,
    JobColumns,
    KernelArrays,
    PriorityRules,
    Queue,
    Unlaunchable,
    WaveForm,
    has_known_resources,
)
from advisor.native.compiled import (
    COMPILED,
    WHY_NOT_COMPILED,
    count_resident_blocks,
    scale_kernels,
    simulate_queue,
)
from advisor.native.reference import occupancy, resident_blocks

__all__ = [
    "ASSUMED_REGISTERS_PER_THREAD",
    "ASSUMED_SHARED_BYTES",
    "COMPILED",
    "LIMIT_COLUMNS",
    "WHY_NOT_COMPILED",
    "Backfill",
    "ClusterColumns",
    "GpuArrays",
    "JobColumns",
    "KernelArrays",
    "PriorityRules",
    "Queue",
    "Unlaunchable",
    "WaveForm",
    "count_resident_blocks",
    "has_known_resources",
    "occupancy",
    "resident_blocks",
    "scale_kernels",
    "simulate_queue",
]
