"""What makes measured kernels doubtful."""

from __future__ import annotations

from advisor.core.findings import Code
from advisor.report.words.table import Words


def clocks_drifted(*, drift: float) -> str:
    """One kernel took longer at times."""
    seen = f"the same product took up to {drift:.0%} longer at times: the clocks changed"
    return f"{seen} (heat, a power limit) or others used the device; kernels measured then are too slow"


def kernels_disagree(*, constant: str, num_kernels: int, spread: float) -> str:
    """No one constant suits all kernels."""
    return (
        f"{constant}: the {num_kernels} kernels differ by {spread:.0%} from each other"
        " in how far predictions are off; the constant is a compromise"
    )


KERNEL_NOTES: Words = {
    Code.CLOCKS_DRIFTED: clocks_drifted,
    Code.KERNELS_DISAGREE: kernels_disagree,
}
