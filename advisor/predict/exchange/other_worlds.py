"""The trace of one of another number of ranks, where the recorded one tells: groups grow, parts shrink."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.core.values import Collective, MemoryUse, Trace
from advisor.operators.work import tensor_bytes
from advisor.predict.exchange.collectives import (
    exchanging_passes,
    gathered_bytes,
    group_at,
    sent_tensors,
    sharding_group,
    state_group,
)
from advisor.predict.exchange.partition import first_part, updated_tensors

# A file may tell any number of tensors, and none may fill our memory.
_MOST_TENSORS = 2**16


def shard_growth(trace: Trace, num_ranks: int) -> float:
    """How many times as large a rank's part of the optimizer's work is among so many ranks than recorded."""
    if (recorded := state_group(trace)) is not None:
        return _state_part(trace, num_ranks, recorded) / _state_part(trace, recorded, recorded)
    group, other = sharding_group(trace), group_at(trace, num_ranks)
    return group / other if group is not None and other is not None else 1.0


def resharded(trace: Trace, num_ranks: int) -> Trace:
    """The trace of one of so many ranks, where that is known: groups grow, shares of the model shrink.

    Ranks that shard among a part of the world (hybrid sharding) go on doing so, in more such groups.
    """
    world = trace.world_size
    if world is None or num_ranks == world:
        return trace
    if state_group(trace) is not None:
        memory = _with_state(trace.memory, shard_growth(trace, num_ranks), _parts(trace))
        return _in_world(trace, num_ranks, {world: num_ranks}, memory)
    group, other = sharding_group(trace), group_at(trace, num_ranks)
    if group is None or other is None:
        return trace
    sizes = {group: other} | ({world // group: num_ranks // group} if group < world else {world: num_ranks})
    there = _in_world(trace, num_ranks, sizes, _grown(trace.memory, group / other))
    return replace(there, is_sharded=other > 1)


def undivided(trace: Trace) -> Trace:
    """The trace of a script whose ranks share no optimizer state, where they do."""
    if state_group(trace) is None:
        return trace
    kept = tuple(c for c in trace.collectives if c.kind not in ("broadcast", "all_gather"))
    return replace(trace, memory=resharded(trace, 1).memory, collectives=kept)


def _state_part(trace: Trace, ranks: int, recorded: int) -> float:
    """The share of the optimizer's state that the first of so many ranks keeps.

    Where each recorded rank sent its tensors in one piece, more ranks are taken to share pieces evenly.
    """
    if gathered_bytes(trace) is not None:
        return 1 / ranks
    sizes = _sizes(trace)
    known = min(ranks, recorded) if len(sizes) <= recorded else ranks
    return first_part(sizes, known) * known / ranks if sizes else 1 / ranks


def _sizes(trace: Trace) -> tuple[int, ...]:
    """Bytes of what ranks share; nothing where there is too much of it."""
    sent = sent_tensors(trace)
    count = sum(c.count for c in sent)
    if count == 1:
        tensors = updated_tensors(trace.ops, trace.memory.gradient_bytes or 0)
        return tuple(map(tensor_bytes, tensors))
    return tuple(c.num_bytes or 0 for c in sent for _ in range(c.count)) if count <= _MOST_TENSORS else ()


def _in_world(trace: Trace, num_ranks: int, sizes: dict[int, int], memory: MemoryUse) -> Trace:
    collectives = tuple(_among(c, sizes) for c in trace.collectives)
    return replace(trace, world_size=num_ranks, collectives=collectives, memory=memory)


def _among(collective: Collective, sizes: dict[int, int]) -> Collective:
    world = collective.world_size
    return collective if world is None else replace(collective, world_size=sizes.get(world, world))


def _grown(memory: MemoryUse, growth: float) -> MemoryUse:
    """With a rank's parts of parameters, gradients and optimizer state that are so many times as large."""
    pass_peak_bytes = _grown_pass_peak(memory, growth)
    return replace(
        memory,
        parameter_bytes=_times(memory.parameter_bytes, growth),
        gradient_bytes=_times(memory.gradient_bytes, growth),
        optimizer_bytes=_times(memory.optimizer_bytes, growth),
        peak_bytes=_grown_peak(memory, growth, pass_peak_bytes),
        pass_peak_bytes=pass_peak_bytes,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Bytes of its part that a rank keeps beside the optimizer's state, where ranks gather the weights.

    Attributes:
        copied: of the weights once more, in FP32.
        stepped: of all gradients when it steps.
        between: of gradients that earlier passes of the iteration left, which count as activations.
    """

    copied: int = 0
    stepped: int = 0
    between: float = 0.0


def _parts(trace: Trace) -> _Parts:
    gathered, memory = gathered_bytes(trace), trace.memory
    if gathered is None:
        return _Parts()
    leaves = 1 < trace.accumulation == exchanging_passes(trace)
    return _Parts(
        copied=max((memory.parameter_bytes or 0) - gathered, 0),
        stepped=memory.gradient_bytes or 0,
        between=min(gathered / (trace.world_size or 1), memory.pass_activation_bytes or 0) if leaves else 0.0,
    )


def _with_state(memory: MemoryUse, growth: float, parts: _Parts) -> MemoryUse:
    """With a rank's part of the optimizer's state that is so many times as large."""
    optimizer, peak_bytes, pass_bytes = memory.optimizer_bytes, memory.peak_bytes, memory.pass_peak_bytes
    if optimizer is None or peak_bytes is None:
        return replace(memory, peak_bytes=None, pass_peak_bytes=None)
    state, more = optimizer + parts.copied, growth - 1
    moments = [(peak_bytes if pass_bytes is None else pass_bytes) + more * (state + parts.between)]
    if pass_bytes is not None and peak_bytes > pass_bytes:
        of_step = state + parts.stepped + _made_by_step(memory, peak_bytes, pass_bytes)
        moments.append(peak_bytes + more * of_step)
    return replace(
        memory,
        parameter_bytes=_plus(memory.parameter_bytes, more * parts.copied),
        gradient_bytes=_plus(memory.gradient_bytes, more * parts.stepped),
        optimizer_bytes=round(growth * optimizer),
        activation_bytes=_plus(memory.activation_bytes, more * parts.between),
        pass_activation_bytes=_plus(memory.pass_activation_bytes, more * parts.between),
        most_activation_bytes=_plus(memory.most_activation_bytes, more * parts.between),
        peak_bytes=round(max(moments)),
        pass_peak_bytes=None if pass_bytes is None else round(moments[0]),
    )


def _plus(num_bytes: int | None, more: float) -> int | None:
    return None if num_bytes is None else round(num_bytes + more)


def _made_by_step(memory: MemoryUse, peak_bytes: int, pass_bytes: int) -> int:
    """What the optimizer makes beside its state, in a step that exceeds the passes."""
    parts = (memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes)
    state = sum(part or 0 for part in parts)
    kept = max(pass_bytes - (memory.pass_activation_bytes or 0) - state, 0)
    return max(peak_bytes - state - kept, 0)


def _grown_peak(memory: MemoryUse, growth: float, pass_peak_bytes: int | None) -> int | None:
    parts = (memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes)
    if memory.peak_bytes is None or None in parts:
        return None
    if memory.pass_peak_bytes is None or pass_peak_bytes is None:
        return round(memory.peak_bytes + (growth - 1) * sum(part or 0 for part in parts))
    # Of a step that exceeds the passes all is state, and what is made of it.
    is_of_step = memory.peak_bytes > memory.pass_peak_bytes
    kept = _kept_bytes(memory)
    return max(pass_peak_bytes, round(kept + growth * (memory.peak_bytes - kept)) if is_of_step else 0)


def _kept_bytes(memory: MemoryUse) -> int:
    """What is there at any time beside the model's state, such as buffers of a library."""
    parts = (memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes)
    held = (memory.pass_activation_bytes or 0) + sum(part or 0 for part in parts)
    return max((memory.pass_peak_bytes or 0) - held, 0)


def _grown_pass_peak(memory: MemoryUse, growth: float) -> int | None:
    """What passes hold of the batch stays; gradients count as far as they are there when a pass peaks."""
    peak_bytes, held_bytes = memory.pass_peak_bytes, memory.pass_activation_bytes
    if peak_bytes is None or held_bytes is None:
        return None
    state = (memory.parameter_bytes or 0) + (memory.optimizer_bytes or 0)
    gradients = min(memory.gradient_bytes or 0, max(peak_bytes - held_bytes - state, 0))
    return round(peak_bytes + (growth - 1) * (state + gradients))


def _times(num_bytes: int | None, growth: float) -> int | None:
    return None if num_bytes is None else round(num_bytes * growth)
