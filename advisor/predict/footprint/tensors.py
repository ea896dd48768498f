"""What the tensors of a script hold at the two moments that can be the peak of an iteration.

A pass peaks when the backward pass begins: all activations are there, and few gradients. The optimizer's step
has no activations, but all gradients and what the optimizer computes beside its state. A large batch makes
the first the peak, a small one or checkpointing the second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.core.units import MIB
from advisor.core.values import Layout, MemoryPart, Phase, Sharding, Trace
from advisor.operators.family import base_name
from advisor.operators.work import tensor_bytes
from advisor.predict.exchange.collectives import holds_buckets, sharded_over
from advisor.predict.footprint.blocks import Blocks, blocks_of

# FSDP holds the unit at work, the next one that it gathers meanwhile, and the gradients of a third.
_GATHERED_UNITS = 3
# What ZeRO-2 reduces at once.
_BUCKET_BYTES = 2 * 25 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes on one GPU.

    Attributes:
        gradients: when the optimizer steps.
        gradients_at_peak: those that are there when a pass peaks.
        activations: what a pass holds of its batch, in proportion.
        copies: weights in autocast's precision, which no batch changes.
        step_temporary: what the optimizer makes beside its state.
        buckets: what the exchange between GPUs holds beside gradients.
        parameters: in whole, whatever this GPU holds of them.
        blocks: the repeated part of the model.
    """

    weights: float
    gradients: float
    optimizer: float
    gradients_at_peak: float
    activations: float
    copies: float
    step_temporary: float
    buckets: float
    parameters: float
    blocks: Blocks

    def tensors(self, batch: float = 1.0) -> Mapping[MemoryPart, float]:
        """Bytes by part at the peak, with such a share of the batch in each pass."""
        always = {MemoryPart.WEIGHTS: self.weights, MemoryPart.OPTIMIZER: self.optimizer}
        in_pass = always | {
            MemoryPart.GRADIENTS: self.gradients_at_peak,
            MemoryPart.ACTIVATIONS: self.activations * batch,
            MemoryPart.TEMPORARY: self.copies,
        }
        in_step = always | {
            MemoryPart.GRADIENTS: self.gradients,
            MemoryPart.ACTIVATIONS: 0.0,
            MemoryPart.TEMPORARY: self.step_temporary,
        }
        return max(in_pass, in_step, key=lambda parts: sum(parts.values())) | {
            MemoryPart.COMMUNICATION: self.buckets
        }


def footprint(trace: Trace, layout: Layout) -> Footprint | None:
    """That of the script on one GPU of the layout; None where a profile tells too little.

    A script that shards over its ranks by itself holds as much less as there are more of them.
    """
    memory = trace.memory
    if memory.peak_bytes is None or memory.activation_bytes is None:
        return None
    ranks = sharded_over(trace)
    if ranks not in (None, layout.num_gpus) and not trace.is_sharded:
        return None
    share = (
        1.0
        if ranks is None
        else _ranks_that_share(trace, ranks) / min(layout.num_gpus, _most_ranks(trace, ranks))
    )
    weights, gradients, optimizer = (
        memory.parameter_bytes or 0,
        memory.gradient_bytes or 0,
        memory.optimizer_bytes or 0,
    )
    at_peak = memory.peak_bytes - memory.activation_bytes - weights - optimizer
    copies = min(copied_bytes(trace), memory.activation_bytes)
    has_buckets = layout.num_gpus > 1 and ranks is None and not holds_buckets(trace)
    return Footprint(
        weights=weights * share,
        gradients=gradients * share,
        optimizer=optimizer * share,
        gradients_at_peak=min(max(at_peak, 0), gradients) * share,
        activations=memory.activation_bytes - copies,
        copies=copies,
        step_temporary=_step_temporary_bytes(trace) * share,
        buckets=gradients if has_buckets else 0,
        parameters=weights,
        blocks=blocks_of(trace),
    )


def sharded(whole: Footprint, sharding: Sharding, layout: Layout) -> Footprint:
    """What each GPU of the layout holds of a model that each of them held in whole."""
    if sharding is Sharding.NONE or layout.num_gpus == 1:
        return whole
    ranks = layout.gpus_per_node if sharding is Sharding.HYBRID else layout.num_gpus
    part = replace(whole, optimizer=whole.optimizer / ranks, step_temporary=whole.step_temporary / ranks)
    if sharding is Sharding.ZERO_1:
        return part
    part = replace(
        part,
        gradients=whole.gradients / ranks,
        gradients_at_peak=whole.gradients_at_peak / ranks,
        buckets=min(whole.gradients, _BUCKET_BYTES),
    )
    if sharding is Sharding.ZERO_2:
        return part
    return replace(
        part,
        weights=whole.weights / ranks,
        copies=0,
        buckets=min(_GATHERED_UNITS / whole.blocks.num, 1) * whole.weights,
    )


def _most_ranks(trace: Trace, ranks: int) -> int | float:
    """Ranks beyond which copies are added and no shards: a hybrid shards within its own groups."""
    group = _ranks_that_share(trace, ranks)
    return group if group < ranks else math.inf


def _ranks_that_share(trace: Trace, ranks: int) -> int:
    groups = [c.world_size for c in trace.collectives if c.kind in ("reduce_scatter", "all_gather")]
    return max((group for group in groups if group is not None), default=ranks)


def copied_bytes(trace: Trace) -> float:
    """Weights that autocast casts once in each pass, and keeps until it ends."""
    parameters = {tensor.shape for op in trace.ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs}
    casts = (op for op in trace.ops if op.phase is Phase.FORWARD and base_name(op.name) == "_to_copy")
    copied = sum(
        op.count * tensor_bytes(op.outputs[0])
        for op in casts
        if op.outputs
        and op.inputs
        and op.inputs[0].shape in parameters
        and tensor_bytes(op.outputs[0]) < tensor_bytes(op.inputs[0])
    )
    return copied / trace.accumulation


def _step_temporary_bytes(trace: Trace) -> float:
    """The most that one operator of the optimizer makes anew."""
    made = (op for op in trace.ops if op.phase is Phase.OPTIMIZER and not base_name(op.name).endswith("_"))
    return max((sum(map(tensor_bytes, op.outputs)) for op in made), default=0)
