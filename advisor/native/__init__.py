"""Occupancy, wave scaling and a cluster's queue: compiled, or the Python reference with the same signatures.

``COMPILED`` says which; without a C++ compiler at installation it is the reference, and
``WHY_NOT_COMPILED`` holds the import error for ``advisor doctor``. Arguments are values of ``arrays``.
"""

from advisor.native.compiled import (
    COMPILED,
    WHY_NOT_COMPILED,
    count_resident_blocks,
    scale_kernels,
    simulate_queue,
)

__all__ = ["COMPILED", "WHY_NOT_COMPILED", "count_resident_blocks", "scale_kernels", "simulate_queue"]
