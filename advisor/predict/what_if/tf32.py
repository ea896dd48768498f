"""A trace as if the script allowed TF32 for products: the same operators at another rate."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import Op, Trace
from advisor.operators.family import Tf32Flag
from advisor.operators.rates import wanted_rate
from advisor.operators.registry import family_of


def allow_tf32(trace: Trace) -> Trace | None:
    """The trace after ``torch.set_float32_matmul_precision("high")``; None if that changes nothing.

    Convolutions have a flag of their own, which is on by default. Times of products that were measured at
    full precision are dropped.
    """

    def is_full(op: Op) -> bool:
        family = family_of(op)
        compute = family.compute
        is_switched = compute.tensor_cores and compute.tf32 is Tf32Flag.MATMUL
        return is_switched and wanted_rate(op, family, trace.precision) == "fp32"

    def unmeasured(op: Op) -> Op:
        return replace(op, measured_s=None, kernels=()) if is_full(op) else op

    if not any(is_full(op) for op in trace.ops):
        return None
    measured = any(op.measured_s is not None or op.kernels for op in trace.ops)
    return replace(
        trace,
        # Where there is nothing to drop they stay the same operators, of which much is known already.
        ops=tuple(map(unmeasured, trace.ops)) if measured else trace.ops,
        precision=replace(trace.precision, tf32_matmul=True),
        iteration_s=None,
    )
