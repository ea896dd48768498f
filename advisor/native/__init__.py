"""Occupancy, wave scaling and a cluster's queue: compiled, or the Python reference with the same signatures.

``COMPILED`` says which; without a C++ compiler at installation it is the reference, and
``WHY_NOT_COMPILED`` holds the import error for ``advisor doctor``. Arguments are values of ``arrays``.
"""

COMPILED: bool
WHY_NOT_COMPILED: str | None = None

try:
    from advisor.native._native import count_resident_blocks, scale_kernels, simulate_queue
except ImportError as error:
    from advisor.native.reference import count_resident_blocks, scale_kernels, simulate_queue

    COMPILED, WHY_NOT_COMPILED = False, str(error)
else:
    COMPILED = True

__all__ = ["COMPILED", "WHY_NOT_COMPILED", "count_resident_blocks", "scale_kernels", "simulate_queue"]
