"""A trace as if the model were compiled: what streams through memory is fused.

Inductor joins chains of element-wise operators, norms and reductions into kernels that read and write memory
once; products stay library calls. A trace does not tell the chains, so the share of bytes that is left was
fitted to published training steps, eager against compiled (docs/methods/what-if.md).
"""

from __future__ import annotations

from dataclasses import replace

from advisor.core.findings import Code
from advisor.core.values import Op, Phase, Trace
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.norm import NORM
from advisor.operators.registry import family_of

FUSED = "advisor::fused"
# Of the bytes of streaming operators of the forward and backward pass in eager mode. Chosen on training steps
# of PyTorch's dashboards (A100, 2023, BSD-3-Clause) by `python -m benchmarks.compiled_steps`.
LEFT_SHARE = 0.5
_STREAMING = frozenset({ELEMENTWISE.word, NORM.word})
_COMPILED = frozenset({Code.COMPILE_IGNORED, Code.COMPILE_MEASURED})


def is_compiled(trace: Trace) -> bool:
    """Whether the script compiles already: profiling ran it uncompiled, and warned."""
    return any(warning.code in _COMPILED for warning in trace.warnings)


def compiled(trace: Trace, left_share: float = LEFT_SHARE) -> Trace | None:
    """The trace with its streaming operators fused.

    Args:
        trace: of the script as it is.
        left_share: of the bytes that these operators move.

    Returns:
        None if there are none, or the script compiles already.
    """
    if is_compiled(trace) or not any(map(_is_fused, trace.ops)):
        return None
    return replace(trace, ops=tuple(_fused(op, left_share) for op in trace.ops), iteration_s=None)


def _is_fused(op: Op) -> bool:
    return op.phase is not Phase.OPTIMIZER and family_of(op).word in _STREAMING and op.bytes > 0


def _fused(op: Op, left_share: float) -> Op:
    if not _is_fused(op):
        return op
    return replace(op, name=FUSED, bytes=round(op.bytes * left_share), measured_s=None, kernels=())
