"""A step as ``torch.compile`` makes it: chains of what streams through memory run as one kernel each.

    relu(norm(product)) in eager mode reads and writes memory twice; compiled it reads once and writes once.

Inductor joins chains of element-wise operators, norms and reductions; products stay library calls, and so
do casts of weights, whose results products read. A trace that was followed tells the chains. Of an older one
a share of the bytes is left, chosen on published training steps (docs/methods/compiled.md); there a chain
ends at a product or a norm, so as many kernels of element-wise operators are left to be launched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from advisor.core.findings import Code
from advisor.core.values import Launch, Op, Phase, Trace
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import base_name
from advisor.operators.norm import NORM
from advisor.operators.registry import family_of
from advisor.predict.distinct import Same
from advisor.predict.what_if.chains import Chains
from advisor.predict.what_if.inductor_layout import laid_out
from advisor.predict.what_if.saved import is_of

FUSED = "advisor::fused"
DEFAULT = "default"
# Of the bytes that streams move in eager mode. Chosen on training steps of PyTorch's dashboards (A100, 2023,
# BSD-3-Clause) by `python -m research.compiled_steps`.
LEFT_SHARE = 0.3
# What joined kernels take longer than their bytes at the bandwidth of plain streams. Chosen on compiled
# passes of timm's models (RTX 4090, torch 2.4 and 2.9, Apache-2.0) by `python -m research.compiled_passes`.
CHAIN_OVERHEAD = 1.2
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


def as_run(trace: Trace, vendor: str) -> Trace:
    """What runs of a trace of eager operators: the same, or fused where the step is compiled.

    Args:
        trace: of eager operators.
        vendor: of the GPU, which decides whether Inductor changes the memory layout.
    """
    if trace.compile_mode is None or trace.launch is not Launch.EAGER:
        return trace
    launch = Launch.GRAPH if trace.compile_mode in _GRAPHS else Launch.COMPILED
    return replace(
        trace, ops=_as_run(Same(trace.ops), vendor, trace.versions.get("torch", "")), launch=launch
    )


@lru_cache(maxsize=8)
def _as_run(same: Same, vendor: str, release: str) -> tuple[Op, ...]:
    return fused(laid_out(tuple(same.ops), vendor, release))


def fused(
    ops: tuple[Op, ...], *, overhead: float = CHAIN_OVERHEAD, left_share: float = LEFT_SHARE
) -> tuple[Op, ...]:
    """The operators with chains of streams joined; where nothing is, the operators themselves.

    Args:
        ops: of one iteration in eager mode.
        overhead: of the bytes of chains.
        left_share: of the bytes that streams move, where the operators do not tell what made their operands.
    """
    return _fused(Same(ops), overhead, left_share)


@lru_cache(maxsize=8)
def _fused(same: Same, overhead: float, left_share: float) -> tuple[Op, ...]:
    ops = tuple(same.ops)
    streams = [i for i, op in enumerate(ops) if op.flows and _streaming_word(op)]
    return tuple(_by_chains(ops, streams, overhead, left_share)) if streams else _by_share(ops, left_share)


def _by_chains(ops: Sequence[Op], streams: Sequence[int], overhead: float, left_share: float) -> Iterator[Op]:
    """The operators, with what is left of streams; those that are whole in other kernels are gone."""
    parts, weights = Chains(ops, streams).joined(), _weights(ops)
    for i, op in enumerate(ops):
        part = parts.get(i)
        if part is None:
            yield _unknown(op, weights, left_share) if _streaming_word(op) else op
        elif part.num_bytes:
            num_bytes = min(overhead * part.num_bytes, op.bytes * op.count)
            yield _part(op, num_bytes, max(part.kernels, 1))


def _unknown(op: Op, weights: frozenset[tuple[int, ...]], left_share: float) -> Op:
    """What is left of a stream that a change of the script added: most are casts."""
    return _joined(op, 1.0, 1.0) if _is_cast_of(op, weights) else _joined(op, left_share, left_share)


def _by_share(ops: tuple[Op, ...], left_share: float) -> tuple[Op, ...]:
    """The same of a trace that does not tell what made which operand."""
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
    is_whole = op.name != FUSED and op.phase in _PASSES and op.bytes > 0
    return word if word in _STREAMING and is_whole else ""


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
    return _part(op, op.bytes * op.count * left_share, max(round(op.count * kernels), 1))


def _part(op: Op, num_bytes: float, kernels: int) -> Op:
    """As many kernels, which move so much together."""
    return replace(
        op,
        name=FUSED,
        count=kernels,
        bytes=int(num_bytes / kernels),
        flops=op.flops * op.count // kernels,
        measured_s=None,
        kernels=(),
    )
