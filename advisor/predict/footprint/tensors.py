"""What the tensors of a script hold at the two moments that can be the peak of an iteration.

A pass peaks when the backward pass begins: all activations are there, and few gradients. The optimizer's step
has no activations, but all gradients and what the optimizer computes beside its state. A large batch makes
the first the peak, a small one or checkpointing the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from advisor.core.units import MIB
from advisor.core.values import WHOLE, Layout, MemoryPart, Phase, Sharding, Split, Trace
from advisor.operators.family import base_name
from advisor.operators.work import tensor_bytes
from advisor.predict.distinct import Same
from advisor.predict.exchange.collectives import holds_buckets, sharded_over
from advisor.predict.exchange.zero import shared_state_ranks
from advisor.predict.footprint.blocks import Blocks, blocks_of

# FSDP holds the unit at work, the next one that it gathers meanwhile, and the gradients of a third.
_GATHERED_UNITS = 3
# What ZeRO reduces at once, without a second copy of all gradients.
_BUCKET_BYTES = 2 * 25 * MIB


class Peak(NamedTuple):
    """Bytes when tensors hold most; ``total`` with weights, optimizer state and buckets."""

    gradients: float
    activations: float
    temporary: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes on one GPU.

    Attributes:
        gradients: when the optimizer steps.
        gradients_at_peak: those that are there when a pass peaks.
        activations: what a pass holds of its batch at its peak, in proportion.
        most_activations: the most that it holds of it, be it before there are gradients.
        copies: weights in autocast's precision, which no batch changes.
        step_temporary: what the optimizer makes beside its state.
        kept: what else the script's tensors hold at any time, such as an average of its weights.
        buckets: what the exchange between GPUs holds beside gradients.
        blocks: the repeated part of the model.
    """

    weights: float
    gradients: float
    optimizer: float
    gradients_at_peak: float
    activations: float
    most_activations: float
    copies: float
    step_temporary: float
    kept: float
    buckets: float
    blocks: Blocks

    def peak(self, batch: float = 1.0) -> Peak:
        """With such a share of the batch in each pass."""
        moments = (
            (self.gradients_at_peak, self.activations * batch, self.copies + self.kept),
            (0.0, self.most_activations * batch, self.copies + self.kept),
            (self.gradients, 0.0, self.step_temporary + self.kept),
        )
        gradients, activations, temporary = max(moments, key=sum)
        always = self.weights + self.optimizer + self.buckets
        return Peak(gradients, activations, temporary, always + gradients + activations + temporary)

    def parts(self, batch: float = 1.0) -> Mapping[MemoryPart, float]:
        """The peak's bytes by part."""
        peak = self.peak(batch)
        return {
            MemoryPart.WEIGHTS: self.weights,
            MemoryPart.GRADIENTS: peak.gradients,
            MemoryPart.OPTIMIZER: self.optimizer,
            MemoryPart.ACTIVATIONS: peak.activations,
            MemoryPart.TEMPORARY: peak.temporary,
            MemoryPart.COMMUNICATION: self.buckets,
        }


def footprint(trace: Trace, layout: Layout, split: Split = WHOLE) -> Footprint | None:
    """That of the script on one GPU of the layout; None where a profile tells too little.

    Args:
        trace: what one GPU runs.
        layout: how many they are.
        split: what copies of that share.
    """
    copies = split.copies(layout)
    whole = _of_a_copy(trace, copies)
    return None if whole is None else sharded(whole, split.sharding, copies)


def _of_a_copy(trace: Trace, layout: Layout) -> Footprint | None:
    memory, ranks = trace.memory, sharded_over(trace)
    if memory.peak_bytes is None or memory.activation_bytes is None or ranks not in (None, layout.num_gpus):
        return None
    weights, gradients = memory.parameter_bytes or 0, memory.gradient_bytes or 0
    state = weights + (memory.optimizer_bytes or 0)
    peak_bytes = _or_else(memory.pass_peak_bytes, memory.peak_bytes)
    held_bytes = _or_else(memory.pass_activation_bytes, memory.activation_bytes)
    most_bytes = max(memory.most_activation_bytes or 0, held_bytes)
    copies = min(copied_bytes(trace), held_bytes)
    beside_bytes = max(peak_bytes - held_bytes - state, 0)
    kept = max(beside_bytes - gradients, 0)
    has_buckets = layout.num_gpus > 1 and ranks is None and not holds_buckets(trace)
    return Footprint(
        weights=weights,
        gradients=gradients,
        optimizer=memory.optimizer_bytes or 0,
        gradients_at_peak=min(beside_bytes, gradients),
        activations=held_bytes - copies,
        most_activations=most_bytes - copies,
        copies=copies,
        step_temporary=_step_temporary_bytes(trace, state + gradients + kept),
        kept=kept,
        buckets=gradients if has_buckets else 0,
        blocks=blocks_of(trace),
    )


def _or_else(value: int | None, other: int) -> int:
    return other if value is None else value


def sharded(whole: Footprint, sharding: Sharding, layout: Layout) -> Footprint:
    """What each GPU of the layout holds of a model that each of them held in whole."""
    if sharding is Sharding.NONE or layout.num_gpus == 1:
        return whole
    ranks = shared_state_ranks(sharding, layout)
    part = replace(
        whole,
        optimizer=whole.optimizer / ranks,
        step_temporary=whole.step_temporary / ranks,
        buckets=min(whole.gradients, _BUCKET_BYTES),
    )
    if sharding is Sharding.ZERO_1:
        return part
    part = replace(part, gradients=whole.gradients / ranks, gradients_at_peak=whole.gradients_at_peak / ranks)
    if sharding is Sharding.ZERO_2:
        return part
    return replace(
        part,
        weights=whole.weights / ranks,
        copies=0,
        buckets=min(_GATHERED_UNITS / whole.blocks.num, 1) * whole.weights,
    )


def copied_bytes(trace: Trace) -> float:
    """Weights that autocast casts once in each pass, and keeps until it ends."""
    return _copied_bytes(Same(trace.ops)) / trace.accumulation


@lru_cache(maxsize=8)
def _copied_bytes(same: Same) -> int:
    parameters = {tensor.shape for op in same.ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs}
    return sum(
        op.count * tensor_bytes(op.outputs[0])
        for op in same.ops
        if op.phase is Phase.FORWARD
        and base_name(op.name) == "_to_copy"
        and op.inputs[0].shape in parameters
        and tensor_bytes(op.outputs[0]) < tensor_bytes(op.inputs[0])
    )


def _step_temporary_bytes(trace: Trace, state_bytes: int) -> int:
    """What the step's peak holds beside the state, or else the most that one of its operators makes anew."""
    memory = trace.memory
    if memory.pass_peak_bytes is not None and (memory.peak_bytes or 0) > memory.pass_peak_bytes:
        return max((memory.peak_bytes or 0) - state_bytes, 0)
    return _most_made_bytes(Same(trace.ops))


@lru_cache(maxsize=8)
def _most_made_bytes(same: Same) -> int:
    made = (op for op in same.ops if op.phase is Phase.OPTIMIZER and not base_name(op.name).endswith("_"))
    return max((sum(map(tensor_bytes, op.outputs)) for op in made), default=0)
