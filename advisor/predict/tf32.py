"""A trace as if the script allowed TF32 for products: the same operators at another rate."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import Op, Trace
from advisor.operators.families import Family, family_of
from advisor.predict.roofline import wanted_rate

_BY_MATMUL_FLAG = frozenset({Family.GEMM, Family.ATTENTION})


def allow_tf32(trace: Trace) -> Trace | None:
    """The trace after ``torch.set_float32_matmul_precision("high")``; None if that changes nothing.

    Convolutions have a flag of their own, which is on by default. Times of products that were measured at
    full precision are dropped.
    """

    def is_full(op: Op) -> bool:
        family = family_of(op)
        return family in _BY_MATMUL_FLAG and wanted_rate(op, family, trace.precision) == "fp32"

    if not any(is_full(op) for op in trace.ops):
        return None
    return replace(
        trace,
        ops=tuple(replace(op, measured_s=None, kernels=()) if is_full(op) else op for op in trace.ops),
        precision=replace(trace.precision, tf32_matmul=True),
        iteration_s=None,
    )
