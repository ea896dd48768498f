"""What the ranks of a distributed script exchange, as far as its recorded collectives tell.

Data parallelism reduces every gradient; whoever reduces less, or scatters what it reduces, holds a part of
the model in each rank. A trace of such a rank tells of another number of ranks where it gathers whole
parameters and scatters whole gradients (`resharded`), and nothing where it exchanges activations.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import Collective, MemoryUse, Trace

SHARDING = ("all_gather", "reduce_scatter")
"""What shards of a model are exchanged by."""

# Gradients that a hook compresses to half their precision are still all gradients.
_LEAST_SHARE_REDUCED = 0.45
# A rank's share is rounded up: parameters to equal shares, tensors to the allocator's blocks.
_MOST_SHARE_SCATTERED = 1.05


def reduced_bytes(trace: Trace) -> int | None:
    """Bytes that a rank all-reduces per iteration; None where none were recorded."""
    reductions = [c for c in trace.collectives if c.kind == "all_reduce" and c.num_bytes is not None]
    return sum((c.num_bytes or 0) * c.count for c in reductions) if reductions else None


def exchanging_passes(trace: Trace) -> int:
    """Backward passes of an iteration after which all gradients are reduced: one, under `no_sync`."""
    reduced, once = reduced_bytes(trace), trace.memory.gradient_bytes
    if not reduced or not once:
        return 1
    return min(max(round(reduced / once), 1), trace.accumulation)


def kinds_of_each_pass(trace: Trace) -> frozenset[str]:
    """What each pass of an iteration exchanges: parameters, and gradients without `no_sync`."""
    kinds, group = frozenset(c.kind for c in trace.collectives), sharding_group(trace)
    if group is None:
        reduces_each = trace.accumulation > 1 and exchanging_passes(trace) == trace.accumulation
        return kinds if reduces_each else frozenset()
    once = _MOST_SHARE_SCATTERED * group * (trace.memory.gradient_bytes or 0)
    scatters_each = trace.accumulation == 1 or _scattered_bytes(trace) > once
    return kinds if scatters_each else kinds & {"all_gather"}


def _scattered_bytes(trace: Trace) -> int:
    return sum((c.num_bytes or 0) * c.count for c in trace.collectives if c.kind == "reduce_scatter")


def buckets_of_pass(trace: Trace) -> tuple[int, ...]:
    """Bytes of the all-reduces of one exchanging pass, in order; empty where none were recorded."""
    passes = exchanging_passes(trace)
    return tuple(
        c.num_bytes
        for c in trace.collectives
        if c.kind == "all_reduce" and c.num_bytes is not None
        for _ in range(-(-c.count // passes))
    )


def holds_buckets(trace: Trace) -> bool:
    """Whether the script exchanged gradients itself, so that its buckets were there when the peak was."""
    return any(c.num_bytes is not None for c in trace.collectives)


def sharded_over(trace: Trace) -> int | None:
    """Ranks that share the traced model, None where each holds all of it on any number of GPUs.

    It is 1 of a script that divides its model and was profiled alone.
    """
    if trace.is_sharded:
        return trace.world_size
    if trace.world_size in (None, 1):
        return None
    if any(c.kind == "reduce_scatter" and c.world_size != 1 for c in trace.collectives):
        return trace.world_size
    all_gradients = trace.memory.gradient_bytes or 0
    reduces_all = (reduced_bytes(trace) or 0) >= _LEAST_SHARE_REDUCED * all_gradients
    return None if reduces_all or not trace.collectives else trace.world_size


def sharding_group(trace: Trace) -> int | None:
    """Ranks among which parameters are gathered and gradients scattered; None if anything else is exchanged.

    They are of FSDP and ZeRO-3: each rank keeps an equal part of every tensor, and what is scattered in an
    iteration is all gradients, once or after each pass.
    """
    groups = {c.world_size for c in trace.collectives if c.kind in SHARDING}
    group = next(iter(groups), None)
    if len(groups) != 1 or group is None or sharded_over(trace) is None:
        return None
    scattered = _scattered_bytes(trace)
    once = (trace.memory.gradient_bytes or 0) * group
    most = _MOST_SHARE_SCATTERED * trace.accumulation * once
    return group if 0 < _LEAST_SHARE_REDUCED * once <= scattered <= most else None


def is_known_at(trace: Trace, num_ranks: int) -> bool:
    """Whether the trace tells what one of so many ranks does."""
    world = sharded_over(trace)
    return world in (None, num_ranks) or _group_at(trace, num_ranks) is not None


def shard_growth(trace: Trace, num_ranks: int) -> float:
    """How many times as large a rank's part of the model is among so many ranks than it was recorded."""
    group, other = sharding_group(trace), _group_at(trace, num_ranks)
    return group / other if group is not None and other is not None else 1.0


def resharded(trace: Trace, num_ranks: int) -> Trace:
    """The trace of one of so many ranks, where that is known: groups grow, shares of the model shrink.

    Ranks that shard among a part of the world (hybrid sharding) go on doing so, in more such groups.
    """
    group, world, other = sharding_group(trace), trace.world_size, _group_at(trace, num_ranks)
    if group is None or world is None or other is None or num_ranks == world:
        return trace
    sizes = {group: other} | ({world // group: num_ranks // group} if group < world else {world: num_ranks})
    return replace(
        trace,
        world_size=num_ranks,
        is_sharded=other > 1,
        collectives=tuple(_among(c, sizes) for c in trace.collectives),
        memory=_grown(trace.memory, group / other),
    )


def _group_at(trace: Trace, num_ranks: int) -> int | None:
    """Ranks of a group that shards among so many ranks in all."""
    group = sharding_group(trace)
    if group is None or group == trace.world_size:
        return None if group is None else num_ranks
    return group if num_ranks % group == 0 else None


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


def _grown_peak(memory: MemoryUse, growth: float, pass_peak_bytes: int | None) -> int | None:
    parts = (memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes)
    if memory.peak_bytes is None or None in parts:
        return None
    if memory.pass_peak_bytes is None or pass_peak_bytes is None:
        return round(memory.peak_bytes + (growth - 1) * sum(part or 0 for part in parts))
    # Of a step that exceeds the passes all is state, and what is made of it.
    is_of_step = memory.peak_bytes > memory.pass_peak_bytes
    return max(pass_peak_bytes, round(growth * memory.peak_bytes) if is_of_step else 0)


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
