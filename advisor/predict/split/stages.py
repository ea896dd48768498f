"""The layers of a model in stages, one after the other, which take micro-batches in turn.

Of M micro-batches and P stages all but the first stage wait for the first micro-batch, so that an iteration
takes ``M + P - 1`` times what a stage takes of one. Each stage holds the activations of up to P of them, if a
backward pass goes before the next forward one (Narayanan et al., SC 2021).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.core.values import Op, Phase, Split, TensorSpec, Trace
from advisor.operators.costs import cost_of
from advisor.predict.batch_share import BatchShare, memory_at


def is_of_layers(op: Op, num_layers: int, passes: int) -> bool:
    """Whether an operator runs in each layer."""
    return op.phase is not Phase.OPTIMIZER and op.count // passes >= num_layers


def stage_ops(ops: Sequence[Op], num_layers: int, passes: int, stages: int) -> tuple[Op, ...]:
    """What the busiest stage runs, in the same order: its layers, and all that is outside of layers."""
    share = -(-num_layers // stages) / num_layers

    def of_stage(op: Op) -> Op:
        if op.phase is Phase.OPTIMIZER:
            return _stepped(op, num_layers, share)
        return replace(op, count=_part(op.count, share)) if is_of_layers(op, num_layers, passes) else op

    return tuple(map(of_stage, ops))


def _part(count: int, share: float) -> int:
    return math.ceil(round(count * share, 6))


def _stepped(op: Op, num_layers: int, share: float) -> Op:
    """The step over a stage's parameters: of shapes that each layer has, its share."""
    size = len(op.outputs) if op.outputs and len(op.inputs) % len(op.outputs) == 0 else len(op.inputs)
    if size < num_layers:
        return op
    lists = [op.inputs[start : start + size] for start in range(0, len(op.inputs), size)]
    inputs = tuple(tensor for one in lists for tensor in _kept(one, num_layers, share))
    outputs = tuple(_kept(op.outputs, num_layers, share))
    cost = cost_of(op.name, inputs, outputs, dict(op.attributes))
    return replace(
        op, inputs=inputs, outputs=outputs, flops=cost.flops, bytes=cost.bytes, measured_s=None, kernels=()
    )


def _kept(tensors: Sequence[TensorSpec], num_layers: int, share: float) -> Iterator[TensorSpec]:
    left = {
        shape: _part(count, share) if count >= num_layers else count
        for shape, count in Counter(tensor.shape for tensor in tensors).items()
    }
    for tensor in tensors:
        if left[tensor.shape]:
            left[tensor.shape] -= 1
            yield tensor


def in_micro_batches(share: BatchShare, trace: Trace, split: Split) -> BatchShare:
    """The same samples in as many passes as let the stages be fastest.

    More passes leave stages less idle, and smaller ones fill a GPU less well.
    """
    if split.pipeline == 1 and split.micro_batches is None:
        return share
    passes, samples = round(trace.accumulation * share.passes), (trace.batch_size or 0) * share.whole
    wanted = [split.micro_batches] if split.micro_batches else [passes]
    while split.micro_batches is None and 2 * wanted[-1] <= samples:
        wanted.append(2 * wanted[-1])

    def of(number: int) -> BatchShare:
        return BatchShare(passes=number / trace.accumulation, batch=share.whole * trace.accumulation / number)

    return of(min(wanted, key=lambda number: (1 + (split.pipeline - 1) / number) * of(number).time))


def in_flight(trace: Trace, split: Split) -> Trace:
    """The trace with the activations of as many passes as a stage holds."""
    passes = min(split.pipeline, trace.accumulation)
    return trace if passes == 1 else replace(trace, memory=memory_at(trace, passes))
