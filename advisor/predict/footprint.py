"""Bytes that one GPU must hold: tensors at the peak, what the allocator loses, what a process adds."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from advisor.core import values
from advisor.core.gpus import catalog_path
from advisor.core.units import MIB
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.family import base_name
from advisor.operators.gemm import GEMM
from advisor.operators.registry import family_of
from advisor.operators.work import tensor_bytes
from advisor.predict.distinct import Blocks, blocks_of, kept
from advisor.predict.exchange.collectives import holds_buckets, sharded_over
from advisor.predict.exchange.data_parallel import shared_state_ranks

# A pass peaks when the backward pass begins: all activations are there, and few gradients. The optimizer's
# step has no activations, but all gradients and what the optimizer computes beside its state. A large batch
# makes the first the peak, a small one or checkpointing the second.

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
    """Bytes on one GPU."""

    weights: float
    gradients: float
    """When the optimizer steps."""
    optimizer: float
    gradients_at_peak: float
    """Those that are there when a pass peaks."""
    activations: float
    """What a pass holds of its batch at its peak, in proportion."""
    most_activations: float
    """The most that it holds of it, be it before there are gradients."""
    copies: float
    """Weights in autocast's precision, which no batch changes."""
    step_temporary: float
    """What the optimizer makes beside its state."""
    kept: float
    """What else the script's tensors hold at any time, such as an average of its weights."""
    buckets: float
    """What the exchange between GPUs holds beside gradients."""
    blocks: Blocks
    """The repeated part of the model."""

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

    def parts(self, batch: float = 1.0) -> Mapping[values.MemoryPart, float]:
        """The peak's bytes by part."""
        peak = self.peak(batch)
        return {
            values.MemoryPart.WEIGHTS: self.weights,
            values.MemoryPart.GRADIENTS: peak.gradients,
            values.MemoryPart.OPTIMIZER: self.optimizer,
            values.MemoryPart.ACTIVATIONS: peak.activations,
            values.MemoryPart.TEMPORARY: peak.temporary,
            values.MemoryPart.COMMUNICATION: self.buckets,
        }


def footprint(
    trace: values.Trace, layout: values.Layout, split: values.Split = values.WHOLE
) -> Footprint | None:
    """That of the script on one GPU of the layout; None where a profile tells too little."""
    copies = split.copies(layout)
    whole = _of_a_copy(trace, copies)
    return None if whole is None else sharded(whole, split.sharding, copies)


def _of_a_copy(trace: values.Trace, layout: values.Layout) -> Footprint | None:
    memory, ranks = trace.memory, sharded_over(trace)
    if memory.peak_bytes is None or memory.activation_bytes is None or ranks not in (None, layout.num_gpus):
        return None
    weights, gradients = memory.parameter_bytes or 0, memory.gradient_bytes or 0
    state = weights + (memory.optimizer_bytes or 0)
    peak_bytes = memory.peak_bytes if memory.pass_peak_bytes is None else memory.pass_peak_bytes
    held_bytes = memory.pass_activation_bytes
    held_bytes = memory.activation_bytes if held_bytes is None else held_bytes
    most_bytes = max(memory.most_activation_bytes or 0, held_bytes)
    copies = min(copied_bytes(trace), held_bytes)
    beside_bytes = max(peak_bytes - held_bytes - state, 0)
    kept = max(beside_bytes - gradients, 0)
    has_buckets = layout.num_gpus > 1 and ranks is None and not holds_buckets(trace)
    # What the step's peak holds beside the state, or else the most that one of its operators makes anew.
    step_temporary = _most_made_bytes(trace.ops)
    if memory.pass_peak_bytes is not None and memory.peak_bytes > memory.pass_peak_bytes:
        step_temporary = max(memory.peak_bytes - state - gradients - kept, 0)
    return Footprint(
        weights=weights,
        gradients=gradients,
        optimizer=memory.optimizer_bytes or 0,
        gradients_at_peak=min(beside_bytes, gradients),
        activations=held_bytes - copies,
        most_activations=most_bytes - copies,
        copies=copies,
        step_temporary=step_temporary,
        kept=kept,
        buckets=gradients if has_buckets else 0,
        blocks=blocks_of(trace),
    )


def sharded(whole: Footprint, sharding: values.Sharding, layout: values.Layout) -> Footprint:
    """What each GPU of the layout holds of a model that each of them held in whole."""
    if sharding is values.Sharding.NONE or layout.num_gpus == 1:
        return whole
    ranks = shared_state_ranks(sharding, layout)
    part = replace(
        whole,
        optimizer=whole.optimizer / ranks,
        step_temporary=whole.step_temporary / ranks,
        buckets=min(whole.gradients, _BUCKET_BYTES),
    )
    if sharding is values.Sharding.ZERO_1:
        return part
    part = replace(part, gradients=whole.gradients / ranks, gradients_at_peak=whole.gradients_at_peak / ranks)
    if sharding is values.Sharding.ZERO_2:
        return part
    return replace(
        part,
        weights=whole.weights / ranks,
        copies=0,
        buckets=min(_GATHERED_UNITS / whole.blocks.num, 1) * whole.weights,
    )


def copied_bytes(trace: values.Trace) -> float:
    """Weights that autocast casts once in each pass, and keeps until it ends."""
    return _copied_bytes(trace.ops) / trace.accumulation


@kept(8)
def _copied_bytes(ops: Sequence[values.Op]) -> int:
    parameters = {tensor.shape for op in ops if op.phase is values.Phase.OPTIMIZER for tensor in op.inputs}
    return sum(
        op.count * tensor_bytes(op.outputs[0])
        for op in ops
        if op.phase is values.Phase.FORWARD
        and base_name(op.name) == "_to_copy"
        and op.inputs[0].shape in parameters
        and tensor_bytes(op.outputs[0]) < tensor_bytes(op.inputs[0])
    )


@kept(8)
def _most_made_bytes(ops: Sequence[values.Op]) -> int:
    made = (op for op in ops if op.phase is values.Phase.OPTIMIZER and not base_name(op.name).endswith("_"))
    return max((sum(map(tensor_bytes, op.outputs)) for op in made), default=0)


# Threads that an SM of an unknown kind can hold (CUDA programming guide, compute capability 7.0).
_THREADS = 2048
NOTHING = values.Interval(p10=0.0, p50=0.0, p90=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What is held beside tensors."""

    parts: Mapping[values.MemoryPart, values.Interval]
    """Bytes that no batch changes."""
    fixed: values.Interval
    """Their sum."""
    fragmentation: values.Interval
    """What the allocator reserves, over what tensors hold at the peak."""


def overheads(trace: values.Trace, gpu: values.GpuSpec, layout: values.Layout) -> Overheads:
    """Those of the script on one GPU of the layout.

    A peak that a real GPU's allocator measured has the libraries' scratch space in it.
    """
    words = frozenset() if trace.backend == "cuda" else _words(trace.ops)
    return overheads_of(words, gpu, layout)


@kept(8)
def _words(ops: Sequence[values.Op]) -> frozenset[str]:
    return frozenset(family_of(op).word for op in ops)


def overheads_of(families: frozenset[str], gpu: values.GpuSpec, layout: values.Layout) -> Overheads:
    """Those of a script whose operators are of families with these words, and take scratch space."""
    facts, context = _facts(), _facts()["context"]
    is_large = _capability(gpu) >= facts["products"]["large_from_capability"]
    spaces = {
        GEMM.word: facts["products"]["large_workspace_mib" if is_large else "workspace_mib"],
        CONVOLUTION.word: facts["convolutions"]["workspace_mib"],
    }
    threads = gpu.num_sms * (_THREADS if gpu.occupancy is None else gpu.occupancy.max_threads)
    stacks, modules = threads * context["stack_bytes_per_thread"], _interval(context["modules_mib"])
    channels = _interval(facts["communication"]["channels_mib"])
    parts = {
        values.MemoryPart.COMMUNICATION: channels if layout.num_gpus > 1 else NOTHING,
        values.MemoryPart.WORKSPACE: added([_interval(spaces[word]) for word in spaces if word in families]),
        values.MemoryPart.CONTEXT: values.Interval(
            p10=modules.p10 + stacks, p50=modules.p50 + stacks, p90=modules.p90 + stacks
        ),
    }
    return Overheads(parts=parts, fixed=added(list(parts.values())), fragmentation=fragmentation())


def fragmentation() -> values.Interval:
    """What the caching allocator reserves, over what tensors hold at the peak."""
    return _interval(_facts()["fragmentation"]["share"], unit=1)


def added(intervals: list[values.Interval]) -> values.Interval:
    """The sum of independent quantities: medians add up, widths in quadrature."""
    p50 = sum(one.p50 for one in intervals)
    below = sum((one.p50 - one.p10) ** 2 for one in intervals) ** 0.5
    above = sum((one.p90 - one.p50) ** 2 for one in intervals) ** 0.5
    return values.Interval(p10=p50 - below, p50=p50, p90=p50 + above)


def _capability(gpu: values.GpuSpec) -> float:
    try:
        return float(gpu.compute_capability)
    except ValueError:
        return 0.0


def _interval(facts: Mapping[str, float], unit: float = MIB) -> values.Interval:
    return values.Interval(p10=facts["low"] * unit, p50=facts["mid"] * unit, p90=facts["high"] * unit)


@cache
def _facts() -> Mapping[str, Any]:
    return tomllib.loads(catalog_path("memory.toml").read_text(encoding="utf-8"))


# Of activations at twice or half the profiled batch: of networks recorded at two batches, they grow in
# proportion within this.
_SIGMA_PER_DOUBLING = 0.02


def memory_need(
    trace: values.Trace, gpu: values.GpuSpec, layout: values.Layout, split: values.Split = values.WHOLE
) -> values.MemoryEstimate | None:
    """What one GPU of the layout must hold for the script; None where its profile tells too little."""
    tensors = footprint(trace, layout, split)
    return None if tensors is None else need_of(tensors, overheads(trace, gpu, layout))


def need_of(
    tensors: Footprint, beside: Overheads, batch: float = 1.0, *, sigma_activations: float = 0.0
) -> values.MemoryEstimate:
    """The need with such a share of the profiled batch in each pass.

    Args:
        batch: of a pass, over the profiled one.
        sigma_activations: of activations that were not recorded, over their size.
    """
    need = need_bytes(tensors, beside, batch, sigma_activations=sigma_activations)
    parts = {part: round(num_bytes) for part, num_bytes in tensors.parts(batch).items()}
    for part, interval in beside.parts.items():
        parts[part] = parts.get(part, 0) + round(interval.p50)
    # The rest, so that parts add up.
    parts[values.MemoryPart.FRAGMENTATION] = round(need.p50) - sum(parts.values())
    return values.MemoryEstimate(parts={part: parts[part] for part in values.MemoryPart}, need_bytes=need)


def need_bytes(
    tensors: Footprint, beside: Overheads, batch: float = 1.0, *, sigma_activations: float = 0.0
) -> values.Interval:
    """As :func:`need_of`, all parts together: a search for the largest batch asks often."""
    peak = tensors.peak(batch)
    lost, fixed = beside.fragmentation, beside.fixed
    sigma = math.hypot(sigma_activations, _SIGMA_PER_DOUBLING * math.log2(batch) if batch > 0 else 0.0)
    off = values.Z90 * sigma * peak.activations
    p50 = round(lost.p50 * peak.total + fixed.p50)
    below = math.hypot(off, (lost.p50 - lost.p10) * peak.total, fixed.p50 - fixed.p10)
    above = math.hypot(off, (lost.p90 - lost.p50) * peak.total, fixed.p90 - fixed.p50)
    return values.Interval(p10=p50 - below, p50=p50, p90=p50 + above)
