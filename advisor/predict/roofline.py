"""Operator time from FLOPs, bytes and what the GPU reaches of its two roofs.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. For an operator of F FLOPs and
B bytes on a GPU of peak P and bandwidth D: ``t = launch + max(F / (f * P), B / (b * D))``, where f and
b are fitted fractions (``advisor.predict.constants``) and launch is the least time of one kernel. A family
whose kernels do otherwise says so by its own ``time`` (``advisor.operators``).
"""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.family import Family, RooflineTime, Roofs
from advisor.operators.rates import rate_for, rate_of_call, wanted_rate
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
