"""A step as ``torch.compile`` makes it: chains of what streams through memory run as one kernel each.

    relu(norm(product)) in eager mode reads and writes memory twice; compiled it reads once and writes once.

Inductor joins chains of element-wise operators, norms and reductions; products stay library calls, and so
do casts of weights, whose results products read. A trace does not tell the chains, so a share of the bytes is
left, chosen on published training steps (docs/methods/compiled.md). A chain ends at a product or a norm: so
many kernels of element-wise operators are left to be launched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from advisor.core.findings import Code
from advisor.core.values import Launch, Op, Phase, Trace
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import base_name
from advisor.operators.norm import NORM
from advisor.operators.registry import family_of
from advisor.predict.distinct import Same
from advisor.predict.what_if.saved import is_of

FUSED = "advisor::fused"
DEFAULT = "default"
# Of the bytes that streams move in eager mode. Chosen on training steps of PyTorch's dashboards (A100, 2023,
# BSD-3-Clause) by `python -m benchmarks.compiled_steps`.
LEFT_SHARE = 0.3
_STREAMING = frozenset({NORM.word, ELEMENTWISE.word})
# Modes whose launches are recorded once and replayed.
_GRAPHS = frozenset({"reduce-overhead", "max-autotune"})
_TOLD = frozenset({Code.COMPILE_IGNORED, Code.COMPILE_MEASURED})
_PASSES = (Phase.FORWARD, Phase.BACKWARD)
# Their results' shapes follow from values, where a compiled graph ends.
_BREAK = frozenset({"nonzero", "masked_select", "_unique2", "unique_dim", "bincount", "repeat_interleave"})
# A judgement: chains of a few operators are all whole in pieces as long as this.
_LEAST_OPERATORS_OF_A_GRAPH = 50


def is_compiled(trace: Trace) -> bool:
    """Whether the script compiles already; older traces only warn of it."""
    return trace.compile_mode is not None or any(warning.code in _TOLD for warning in trace.warnings)


def graph_breaks(trace: Trace) -> int:
    """How often values decide a shape in the forward pass; 0 where that leaves graphs of some length."""
    forward = [op for op in trace.ops if op.phase is Phase.FORWARD]
    num_breaks = sum(op.count for op in forward if _breaks(op))
    is_often = num_breaks * _LEAST_OPERATORS_OF_A_GRAPH > sum(op.count for op in forward)
    return num_breaks if is_often else 0


def _breaks(op: Op) -> bool:
    name = base_name(op.name)
    is_masked = name == "index" and any(one.dtype in ("bool", "uint8") for one in op.inputs[1:])
    return name in _BREAK or is_masked


def compiled(trace: Trace) -> Trace | None:
    """The script's trace with its model compiled; None if it is already, or nothing could be fused."""
    if is_compiled(trace) or fused(trace.ops) == trace.ops:
        return None
    return replace(trace, compile_mode=DEFAULT, iteration_s=None)


def as_run(trace: Trace) -> Trace:
    """What runs of a trace of eager operators: the same, or fused where the step is compiled."""
    if trace.compile_mode is None or trace.launch is not Launch.EAGER:
        return trace
    launch = Launch.GRAPH if trace.compile_mode in _GRAPHS else Launch.COMPILED
    return replace(trace, ops=fused(trace.ops), launch=launch)


def fused(ops: tuple[Op, ...], left_share: float = LEFT_SHARE) -> tuple[Op, ...]:
    """The operators with chains of streams joined; where nothing is, the operators themselves.

    Args:
        ops: of one iteration in eager mode.
        left_share: of the bytes that streams move.
    """
    return _fused(Same(ops), left_share)


@lru_cache(maxsize=8)
def _fused(same: Same, left_share: float) -> tuple[Op, ...]:
    ops = tuple(same.ops)
    weights = _weights(ops)
    words = ["" if _is_cast_of(op, weights) else _streaming_word(op) for op in ops]
    kernels = {phase: _kernels_of_stream(ops, words, phase) for phase in _PASSES}
    return tuple(
        _joined(op, left_share, kernels[op.phase] if word == ELEMENTWISE.word else _kernels_of_norm(op))
        if word
        else op
        for op, word in zip(ops, words, strict=True)
    )


def _streaming_word(op: Op) -> str:
    """The word of its family if the operator may be joined; else none."""
    word = family_of(op).word
    return word if word in _STREAMING and op.phase in _PASSES and op.bytes > 0 else ""


def _weights(ops: Sequence[Op]) -> frozenset[tuple[int, ...]]:
    """Shapes of the matrices and kernels that the optimizer steps over, sorted."""
    return frozenset(
        tuple(sorted(tensor.shape))
        for op in ops
        if op.phase is Phase.OPTIMIZER
        for tensor in op.inputs
        if len(tensor.shape) > 1
    )


def _is_cast_of(op: Op, weights: frozenset[tuple[int, ...]]) -> bool:
    is_cast = base_name(op.name) == "_to_copy"
    return is_cast and any(is_of(weights, tensor) for tensor in op.inputs)


def _kernels_of_stream(ops: Sequence[Op], words: Sequence[str], phase: Phase) -> float:
    """Of a call of an element-wise operator: there is a chain for each product or norm at most."""
    calls = {True: 0, False: 0}
    for op, word in zip(ops, words, strict=True):
        if op.phase is phase:
            calls[word == ELEMENTWISE.word] += op.count
    return min(calls[False] / calls[True], 1.0) if calls[True] else 1.0


def _kernels_of_norm(op: Op) -> int:
    """What a batch norm divides by is known when a kernel has seen the batch; rows stay on their SM."""
    return 2 if "batch_norm" in op.name else 1


def _joined(op: Op, left_share: float, kernels: float) -> Op:
    """The operator's part of the kernels it is joined into, which move less together."""
    count = max(round(op.count * kernels), 1)
    return replace(
        op,
        name=FUSED,
        count=count,
        bytes=int(op.bytes * op.count * left_share / count),
        flops=op.flops * op.count // count,
        measured_s=None,
        kernels=(),
    )
