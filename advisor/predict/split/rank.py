"""What one GPU runs of a script whose model is supposed to be divided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from advisor.core.errors import InputError
from advisor.core.values import MemoryUse, Op, Phase, Split, Trace
from advisor.operators.work import tensor_bytes
from advisor.predict.distinct import SameTrace
from advisor.predict.footprint.blocks import blocks_of, made_bytes
from advisor.predict.footprint.tensors import copied_bytes
from advisor.predict.split.layers import divided_ops, widths_of
from advisor.predict.split.stages import is_of_layers, stage_ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One of the GPUs that a model is divided among: of the last stage, which has the head besides layers.

    Attributes:
        trace: what it runs.
        undivided: the same stage with whole layers, operator by operator.
        num_layers: of the stage.
        in_layers: whether each operator runs in layers.
        stream_bytes: what one layer hands to the next, for one pass of the profiled batch.
    """

    trace: Trace
    undivided: Trace
    split: Split
    num_layers: int
    in_layers: tuple[bool, ...]
    stream_bytes: float


def why_undivided(trace: Trace, split: Split) -> str | None:
    """Why the layers of a script cannot be divided so; None where they can."""
    blocks = blocks_of(trace)
    if split.divides_layers and (not blocks.repeats or blocks.num < split.pipeline):
        return f"{trace.script!r} has no layers that repeat as often"
    if split.tensor > 1 and widths_of(trace.ops) is None:
        return f"the products of {trace.script!r} are not those of a transformer"
    return None


def rank_of(trace: Trace, split: Split) -> Rank:
    """The part of a GPU; all of the script where layers are not divided.

    Raises:
        InputError: the model has no layers that could be divided so.
    """
    if not split.divides_layers:
        none = (False,) * len(trace.ops)
        return Rank(trace=trace, undivided=trace, split=split, num_layers=0, in_layers=none, stream_bytes=0.0)
    return _rank_of(SameTrace(trace), split)


@lru_cache(maxsize=8)
def _rank_of(same: SameTrace, split: Split) -> Rank:
    trace, blocks = same.trace, blocks_of(same.trace)
    if (why := why_undivided(trace, split)) is not None:
        raise InputError(f"{split.name}: {why}.")
    widths = widths_of(trace.ops)
    staged = stage_ops(trace.ops, blocks.num, trace.accumulation, split.pipeline)
    ops = staged if widths is None or split.tensor == 1 else divided_ops(staged, widths, split.tensor)
    return Rank(
        trace=_with_ops(trace, ops),
        undivided=replace(trace, ops=staged),
        split=split,
        num_layers=-(-blocks.num // split.pipeline),
        in_layers=tuple(is_of_layers(op, blocks.num, trace.accumulation) for op in trace.ops),
        stream_bytes=blocks.boundary_bytes if widths is None else widths.stream_bytes,
    )


def _with_ops(trace: Trace, ops: tuple[Op, ...]) -> Trace:
    part = replace(trace, ops=ops, iteration_s=None)
    weights = _ratio(_stepped_bytes(ops), _stepped_bytes(trace.ops))
    if weights is None:
        weights = _ratio(_forward_flops(ops), _forward_flops(trace.ops)) or 1.0
    activations = _ratio(_forward_bytes(ops), _forward_bytes(trace.ops)) or 1.0
    return replace(part, memory=_memory(trace, copied_bytes(part), weights, activations))


def _memory(trace: Trace, copies: float, weights: float, activations: float) -> MemoryUse:
    """The memory of a rank that holds such shares of weights and activations, and so many bytes of copies."""
    memory, before = trace.memory, copied_bytes(trace)

    def held(num_bytes: int | None) -> int | None:
        return None if num_bytes is None else round(max(num_bytes - before, 0) * activations + copies)

    def state(num_bytes: float | None) -> int | None:
        return None if num_bytes is None else round(num_bytes * weights)

    pass_bytes = memory.peak_bytes if memory.pass_peak_bytes is None else memory.pass_peak_bytes
    held_bytes = (
        memory.activation_bytes if memory.pass_activation_bytes is None else memory.pass_activation_bytes
    )
    peak = None
    if pass_bytes is not None and held_bytes is not None:
        # Of the step, which has no activations, all is state and what is made beside it.
        step_bytes = memory.peak_bytes if (memory.peak_bytes or 0) > pass_bytes else None
        pass_peak = (state(pass_bytes - held_bytes) or 0) + (held(held_bytes) or 0)
        peak = max(pass_peak, state(step_bytes) or 0)
    return replace(
        memory,
        parameter_bytes=state(memory.parameter_bytes),
        gradient_bytes=state(memory.gradient_bytes),
        optimizer_bytes=state(memory.optimizer_bytes),
        activation_bytes=held(memory.activation_bytes),
        peak_bytes=peak,
        pass_activation_bytes=held(memory.pass_activation_bytes),
        pass_peak_bytes=None if memory.pass_peak_bytes is None else pass_peak,
        most_activation_bytes=held(memory.most_activation_bytes),
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _stepped_bytes(ops: Sequence[Op]) -> int:
    """Of the tensors of the optimizer's largest call."""
    steps = [op.inputs for op in ops if op.phase is Phase.OPTIMIZER]
    largest = max(steps, key=lambda inputs: len(inputs), default=())
    return sum(tensor_bytes(tensor) for tensor in largest)


def _forward(ops: Iterable[Op]) -> list[Op]:
    return [op for op in ops if op.phase is Phase.FORWARD]


def _forward_bytes(ops: Sequence[Op]) -> float:
    return made_bytes(_forward(ops))


def _forward_flops(ops: Sequence[Op]) -> float:
    return sum(op.flops * op.count for op in _forward(ops))
