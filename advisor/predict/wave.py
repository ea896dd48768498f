"""Wave scaling of measured kernels to another GPU, summed per operator.

Formulas and sources are in ``advisor.native``. Intensity is the operator's FLOPs over its bytes, since a
profiler counts neither for a single kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.types import GpuSpec, Op

ASSUMPTION = (
    "wave scaling: registers or shared memory of some kernels are unknown, so they are taken not to limit"
    " occupancy"
)


def op_times_s(ops: Sequence[Op], origin: GpuSpec, gpu: GpuSpec) -> NDArray[np.float64]:
    """Seconds of one call of each operator on ``gpu``, shape [len(ops)].

    NaN for an operator without kernels, with a kernel that ``gpu`` cannot launch, or where either GPU is no
    CUDA device: another method has to tell.

    Args:
        ops: measured on ``origin``.
        origin: the GPU of the profile.
        gpu: the destination.
    """
    from advisor.native import GpuArrays, KernelArrays, Unlaunchable, scale_kernels

    owners = [i for i, op in enumerate(ops) for _ in op.kernels]
    times_s = np.full(len(ops), math.nan)
    if not owners or origin.occupancy is None or gpu.occupancy is None:
        return times_s
    kernels = KernelArrays.from_kernels(
        [kernel for op in ops for kernel in op.kernels],
        intensity_flops_per_byte=[_intensity(ops[i]) for i in owners],
    )
    scaled_kg = scale_kernels(
        kernels,
        GpuArrays.from_specs([origin]),
        GpuArrays.from_specs([gpu]),
        unlaunchable=Unlaunchable.NAN,
    )
    times_s[owners] = 0.0
    np.add.at(times_s, owners, scaled_kg[:, 0])
    return times_s


def _intensity(op: Op) -> float | None:
    return op.flops / op.bytes if op.flops and op.bytes else None


def rests_on_unknown_resources(ops: Sequence[Op]) -> bool:
    """Whether a profiler left out registers or shared memory of some kernel."""
    from advisor.native import has_known_resources

    return any(not has_known_resources(kernel) for op in ops for kernel in op.kernels)
