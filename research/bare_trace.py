"""A trace of nothing but operators, for what is measured on operators alone."""

from __future__ import annotations

from advisor.core.values import MemoryUse, Op, Precision, Trace
from advisor.formats.trace_files import SCHEMA_VERSION

TRUE_FP32 = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
_UNKNOWN_MEMORY = MemoryUse(
    parameter_bytes=None, gradient_bytes=None, optimizer_bytes=None, activation_bytes=None, peak_bytes=None
)


def bare_trace(ops: tuple[Op, ...]) -> Trace:
    """These operators in FP32 without TF32; batch, memory and time are unknown."""
    return Trace(
        schema_version=SCHEMA_VERSION, script="", arguments=(), backend="fake", origin_gpu=None, versions={},
        precision=TRUE_FP32, batch_size=None, samples_per_epoch=None, iterations_per_epoch=None,
        accumulation=1, ops=ops, iteration_s=None, data_loading_s=None, num_workers=None,
        memory=_UNKNOWN_MEMORY, collectives=(), warnings=(),
    )  # fmt: skip
