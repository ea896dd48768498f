"""Operator time from what the data sheet says: the roofline, and wave scaling of measured kernels.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. For an operator of F FLOPs and
B bytes on a GPU of peak P and bandwidth D: ``t = launch + max(F / (f * P), B / (b * D))``, where f and
b are fitted fractions (``advisor.predict.constants``) and launch is the least time of one kernel. A family
whose kernels do otherwise says so by its own ``time`` (``advisor.operators``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor import native
from advisor.core.iterables import grouped
from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.native.arrays import GpuArrays, KernelArrays, Unlaunchable, has_known_resources
from advisor.operators.family import Family, RooflineTime, Roofs, rate_for, rate_of_call, wanted_rate
from advisor.operators.registry import family_of

# The median of the tiny kernels of the optimizer steps (966 in-place multiplications, 2,994 additions) in
# PyTorch's published ResNet-50 profile of a V100: so small that only the launch counts.
KERNEL_FLOOR_S = 2e-6


def op_time(op: Op, gpu: GpuSpec, constants: FittedConstants, precision: Precision) -> RooflineTime:
    """Seconds of one call of an operator on ``gpu``."""
    family = family_of(op)
    return time_under(roofs_of(wanted_rate(op, family, precision), family, gpu, constants), op, family)


def roofs_of(wanted: str, family: Family, gpu: GpuSpec, constants: FittedConstants) -> Roofs:
    """The same for any operator of the family that asks for the rate ``wanted``."""
    return Roofs(
        gpu=gpu,
        rate=rate_for(wanted, family, gpu, constants),
        bytes_per_s=constants.fractions[family.bandwidth] * gpu.memory_bytes_per_s,
        bandwidth=family.bandwidth,
        launch_s=KERNEL_FLOOR_S,
    )


def time_under(roofs: Roofs, op: Op, family: Family) -> RooflineTime:
    """Seconds of one call under the roofs of its family."""
    stream = family.stream(op)
    if stream is not None:
        return RooflineTime(
            time_s=stream.time_s(roofs.launch_s, roofs.gpu, roofs.bytes_per_s),
            constant=roofs.bandwidth,
            sigma=stream.cost.pace_on(roofs.gpu).sigma,
        )
    rate = rate_of_call(roofs.rate, op, family)
    return family.time(op, roofs if rate is roofs.rate else replace(roofs, rate=rate))


# Wave scaling of measured kernels: formulas and sources are in ``advisor.native``. Intensity is the
# operator's FLOPs over its bytes, since a profiler counts neither for a single kernel; the ridge point takes
# the peak of the rate the operator runs at.

PeakOf = Callable[[Op, GpuSpec], float]


def op_times_s(
    ops: Sequence[Op], origin: GpuSpec, gpu: GpuSpec, peak_flops_per_s: PeakOf
) -> NDArray[np.float64]:
    """Seconds of one call of each operator on ``gpu``, shape [len(ops)].

    NaN for an operator without kernels, with a kernel that does not fit either GPU, or where one is no CUDA
    device: another method has to tell.

    Args:
        ops: measured on ``origin``.
        peak_flops_per_s: the peak of the rate an operator runs at on a GPU.
    """
    times_s = np.full(len(ops), math.nan)
    if origin.occupancy is None or gpu.occupancy is None:
        return times_s
    owners = [i for i, op in enumerate(ops) for _ in op.kernels]
    kernels = KernelArrays.from_kernels([kernel for op in ops for kernel in op.kernels])
    resident = native.count_resident_blocks(kernels, GpuArrays.from_specs([origin]))[:, 0]
    unfit = {owner for owner, blocks in zip(owners, resident.tolist(), strict=True) if not blocks}
    fitting = [i for i, op in enumerate(ops) if op.kernels and i not in unfit]
    for peak, members in grouped(fitting, lambda i: peak_flops_per_s(ops[i], gpu)).items():
        times_s[members] = _scaled([ops[i] for i in members], origin, gpu, peak)
    return times_s


def _scaled(ops: Sequence[Op], origin: GpuSpec, gpu: GpuSpec, peak: float) -> NDArray[np.float64]:
    owners = [i for i, op in enumerate(ops) for _ in op.kernels]
    intensities = [op.flops / op.bytes if op.flops and op.bytes else None for op in ops]
    kernels = KernelArrays.from_kernels(
        [kernel for op in ops for kernel in op.kernels],
        intensity_flops_per_byte=[intensities[i] for i in owners],
    )
    from_gpu, to_gpu = (
        GpuArrays.from_specs([origin]),
        GpuArrays.from_specs([gpu], peak_flops_per_s=lambda _: peak),
    )
    scaled = native.scale_kernels(kernels, from_gpu, to_gpu, unlaunchable=Unlaunchable.NAN)
    times_s = np.zeros(len(ops))
    np.add.at(times_s, owners, scaled[:, 0])
    return times_s


def rests_on_unknown_resources(ops: Sequence[Op]) -> bool:
    """Whether a profiler left out registers or shared memory of some kernel."""
    return any(not has_known_resources(kernel) for op in ops for kernel in op.kernels)
