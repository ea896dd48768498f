"""Whether PyTorch still runs on a GPU, by compute capability; what the host asks of the packages.

Sources: CUDA 12.0 release notes (Kepler removed), CUDA 13.0 release notes (Maxwell, Pascal and Volta
removed). PyTorch's wheels follow the CUDA version they are built with.
"""

from __future__ import annotations

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import GpuSpec, Plan

CUDA_12_LEAST = (5, 0)
CUDA_13_LEAST = (7, 5)
ARM = "arm64"


def capability(gpu: GpuSpec) -> tuple[int, int] | None:
    """``(7, 5)`` for "7.5"; None for what is no CUDA device."""
    major, dot, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor)) if dot and major.isdigit() and minor.isdigit() else None


def is_unsupported(gpu: GpuSpec) -> bool:
    """True where no PyTorch 2 build with CUDA 12 or later has code for the GPU (Kepler: K80)."""
    version = capability(gpu)
    return version is not None and version < CUDA_12_LEAST


def why_unsupported(gpu: GpuSpec) -> Finding | None:
    """Why PyTorch no longer runs on the GPU; None where it does."""
    if not is_unsupported(gpu):
        return None
    return finding(Code.SOFTWARE, compute_capability=gpu.compute_capability)


def changes(plan: Plan, gpu: GpuSpec) -> list[Finding]:
    """What the user's environment needs to run there."""
    needed = []
    version = capability(gpu)
    if version is not None and CUDA_12_LEAST <= version < CUDA_13_LEAST:
        needed.append(finding(Code.INSTALL_FOR_CUDA_12, architecture=gpu.architecture))
    if version is None:
        needed.append(finding(Code.INSTALL_FOR_VENDOR, vendor=gpu.vendor))
    if plan.offer is not None and plan.offer.architecture == ARM:
        needed.append(finding(Code.INSTALL_AARCH64))
    return needed
