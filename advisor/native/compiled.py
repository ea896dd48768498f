"""The compiled module where it is installed, else the Python reference with the same signatures."""

COMPILED: bool
WHY_NOT_COMPILED: str | None = None

try:
    from advisor.native._native import count_resident_blocks, scale_kernels, simulate_queue
except ImportError as error:
    from advisor.native.reference import count_resident_blocks, scale_kernels, simulate_queue

    COMPILED = False
    WHY_NOT_COMPILED = str(error)
else:
    COMPILED = True

__all__ = ["COMPILED", "WHY_NOT_COMPILED", "count_resident_blocks", "scale_kernels", "simulate_queue"]
