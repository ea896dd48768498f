"""What the ranks of a distributed script exchange, and what ranks of another number would.

Data parallelism reduces every gradient; a script that reduces less, or scatters what it reduces, holds a part
of the model in each rank. A trace of such a rank tells of another number of ranks where it gathers whole
parameters and scatters whole gradients (`resharded`), and nothing where it exchanges activations.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from advisor.core.values import Collective, MemoryUse, Op, Phase, TensorSpec, Trace
from advisor.operators.work import tensor_bytes
from advisor.predict.distinct import kept

# PyTorch's ZeroRedundancyOptimizer gives each tensor, the largest first, to the rank that has least. So a
# large embedding is one rank's, and the first rank's part of the state may be far above an equal one.

# The allocator's blocks, in which a trace counts its gradients; and what an optimizer's list of tensors may
# miss of them all the same.
_BLOCK_BYTES, _OFF = 512, 0.01


@kept(8)
def updated_tensors(ops: Sequence[Op], gradient_bytes: int) -> tuple[TensorSpec, ...]:
    """The first tensors of an optimizer's call that have as many bytes as all gradients."""
    for op in ops:
        if op.phase is Phase.OPTIMIZER and len(op.inputs) > 1:
            sizes = accumulate(
                -(-tensor_bytes(tensor) // _BLOCK_BYTES) * _BLOCK_BYTES for tensor in op.inputs
            )
            for count, size in enumerate(sizes, 1):
                if abs(size - gradient_bytes) <= _OFF * gradient_bytes:
                    return op.inputs[:count]
    return ()


@lru_cache(maxsize=256)
def first_part(sizes: tuple[int, ...], ranks: int) -> float:
    """The share of tensors of these sizes that the first of so many ranks updates.

    >>> first_part((40, 30, 20, 10), 2), first_part((70, 10, 10, 10), 4)
    (0.5, 0.7)
    """
    # No more of them get any, and a file may tell any number of ranks.
    parts = [(0, rank) for rank in range(min(ranks, len(sizes)))]
    for size in sorted(sizes, reverse=True):
        held, rank = parts[0]
        heapq.heapreplace(parts, (held + size, rank))
    return next(held for held, rank in parts if rank == 0) / sum(sizes)


SHARDING = ("all_gather", "reduce_scatter")
"""What shards of a model are exchanged by."""

# Stages of a pipeline send what they compute to the next.
_HANDS_ON = ("send", "recv")
# Gradients that a hook compresses to half their precision are still all gradients.
_LEAST_SHARE_REDUCED = 0.45
# A rank's share is rounded up: parameters to equal shares, tensors to the allocator's blocks.
_MOST_SHARE_SCATTERED = 1.05
# Blocks make gradients of small tensors larger than what is sent of them; buffers may be sent besides.
_LEAST_SHARE_SENT, _MOST_SHARE_SENT = 0.9, 1.05


def reduced_bytes(trace: Trace) -> int | None:
    """Bytes that a rank all-reduces per iteration; None where none were recorded."""
    reductions = [c for c in trace.collectives if c.kind == "all_reduce" and c.num_bytes is not None]
    return _num_bytes(reductions) if reductions else None


def exchanging_passes(trace: Trace) -> int:
    """Backward passes of an iteration after which all gradients are reduced: one, under `no_sync`."""
    reduced, once = reduced_bytes(trace), exchanged_bytes(trace)
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
    return _num_bytes(c for c in trace.collectives if c.kind == "reduce_scatter")


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
    hands_on = any(c.kind in _HANDS_ON and c.world_size != 1 for c in trace.collectives)
    if hands_on or _scatters_gradients(trace):
        return trace.world_size
    all_gradients = trace.memory.gradient_bytes or 0
    reduces_all = (reduced_bytes(trace) or 0) >= _LEAST_SHARE_REDUCED * all_gradients
    return None if reduces_all or not trace.collectives else trace.world_size


def _scatters_gradients(trace: Trace) -> bool:
    """Whether any is scattered, and not only what a loss gathered of all ranks, as contrastive ones do.

    That is little beside the gradients, which all ranks reduce all the same.
    """
    scattered = [c for c in trace.collectives if c.kind == "reduce_scatter" and c.world_size != 1]
    reduced_by_all = _num_bytes(
        c for c in trace.collectives if c.kind == "all_reduce" and c.world_size == trace.world_size
    )
    least = _LEAST_SHARE_REDUCED * (trace.memory.gradient_bytes or 0)
    is_little = all(c.num_bytes is not None for c in scattered) and _scattered_bytes(trace) < least
    return bool(scattered) and not (is_little and reduced_by_all >= least)


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


def state_group(trace: Trace) -> int | None:
    """Ranks that share the optimizer's state, each with a whole model; None if each has all of it.

    Each reduces all gradients and updates its part of the weights, which all get once in an iteration: by
    broadcasts of tensors (ZeRO-1, as PyTorch's ZeroRedundancyOptimizer does it), or by a gather of equal
    parts (ZeRO-1 and 2, as DeepSpeed does them).
    """
    if gathered_bytes(trace) or _is_sent_once(trace, sent_tensors(trace), trace.memory.gradient_bytes):
        return trace.world_size
    return None


def gathered_bytes(trace: Trace) -> int | None:
    """Bytes of the weights that ranks gather after each has updated an equal part; None if they do not."""
    if trace.world_size in (None, 1):
        return None
    gathers = tuple(c for c in trace.collectives if c.kind == "all_gather")
    sent_bytes, reduced = _num_bytes(gathers), reduced_bytes(trace) or 0
    passes = max(round(reduced / sent_bytes), 1) if sent_bytes else 1
    is_of_weights = passes <= trace.accumulation and _is_sent_once(trace, gathers, reduced / passes)
    return sent_bytes if is_of_weights else None


def _is_sent_once(trace: Trace, sent: tuple[Collective, ...], once: float | None) -> bool:
    if not once or {c.world_size for c in sent} != {trace.world_size} or sharded_over(trace) is not None:
        return False
    return _LEAST_SHARE_SENT * once <= _num_bytes(sent) <= _MOST_SHARE_SENT * once


def _num_bytes(collectives: Iterable[Collective]) -> int:
    return sum((c.num_bytes or 0) * c.count for c in collectives)


def exchanged_bytes(trace: Trace) -> int | None:
    """Bytes of all gradients, as a rank that has all of them exchanges them once."""
    return gathered_bytes(trace) or trace.memory.gradient_bytes


def sent_tensors(trace: Trace) -> tuple[Collective, ...]:
    """What one rank sends to all others."""
    return tuple(c for c in trace.collectives if c.kind == "broadcast")


def shares_state(trace: Trace) -> bool:
    """Whether ranks keep anything of a model's state once among them."""
    return sharded_over(trace) is not None or state_group(trace) is not None


def is_known_at(trace: Trace, num_ranks: int) -> bool:
    """Whether the trace tells what one of so many ranks does."""
    world = sharded_over(trace)
    return world in (None, num_ranks) or group_at(trace, num_ranks) is not None


def group_at(trace: Trace, num_ranks: int) -> int | None:
    """Ranks of a group that shards among so many ranks in all; None if the trace does not tell."""
    group = sharding_group(trace)
    if group is None or group == trace.world_size:
        return None if group is None else num_ranks
    return group if num_ranks % group == 0 else None


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
    collectives = (
        c if c.world_size is None else replace(c, world_size=sizes.get(c.world_size, c.world_size))
        for c in trace.collectives
    )
    return replace(trace, world_size=num_ranks, collectives=tuple(collectives), memory=memory)


def _grown(memory: MemoryUse, growth: float) -> MemoryUse:
    pass_peak_bytes = _grown_pass_peak(memory, growth)
    state = [memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes]
    parameters, gradients, optimizer = (None if part is None else round(part * growth) for part in state)
    return replace(
        memory,
        parameter_bytes=parameters,
        gradient_bytes=gradients,
        optimizer_bytes=optimizer,
        peak_bytes=_grown_peak(memory, growth, pass_peak_bytes),
        pass_peak_bytes=pass_peak_bytes,
    )


class _Parts(NamedTuple):
    """Bytes of its part that a rank keeps beside the optimizer's state, where ranks gather the weights.

    Of the weights once more, in FP32, of all gradients when it steps, and of those that earlier passes of the
    iteration left, which count as activations.
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
    optimizer, peak_bytes, pass_bytes = memory.optimizer_bytes, memory.peak_bytes, memory.pass_peak_bytes
    if optimizer is None or peak_bytes is None:
        return replace(memory, peak_bytes=None, pass_peak_bytes=None)
    state, more = optimizer + parts.copied, growth - 1
    moments = [(peak_bytes if pass_bytes is None else pass_bytes) + more * (state + parts.between)]
    if pass_bytes is not None and peak_bytes > pass_bytes:
        # What the optimizer makes beside its state, in a step that exceeds the passes.
        made = max(peak_bytes - memory.state_bytes - _kept_bytes(memory), 0)
        moments.append(peak_bytes + more * (state + parts.stepped + made))
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


def _kept_bytes(memory: MemoryUse) -> int:
    """What is there at any time beside the model's state, such as buffers of a library."""
    held = (memory.pass_activation_bytes or 0) + memory.state_bytes
    return max((memory.pass_peak_bytes or 0) - held, 0)


def _grown_peak(memory: MemoryUse, growth: float, pass_peak_bytes: int | None) -> int | None:
    parts = memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes
    if memory.peak_bytes is None or None in parts:
        return None
    if memory.pass_peak_bytes is None or pass_peak_bytes is None:
        return round(memory.peak_bytes + (growth - 1) * memory.state_bytes)
    # Of a step that exceeds the passes all is state, and what is made of it.
    is_of_step = memory.peak_bytes > memory.pass_peak_bytes
    kept_bytes = _kept_bytes(memory)
    of_step = kept_bytes + growth * (memory.peak_bytes - kept_bytes)
    return max(pass_peak_bytes, round(of_step) if is_of_step else 0)


def _grown_pass_peak(memory: MemoryUse, growth: float) -> int | None:
    """What passes hold of the batch stays; gradients count as far as they are there when a pass peaks."""
    peak_bytes, held_bytes = memory.pass_peak_bytes, memory.pass_activation_bytes
    if peak_bytes is None or held_bytes is None:
        return None
    state = (memory.parameter_bytes or 0) + (memory.optimizer_bytes or 0)
    gradients = min(memory.gradient_bytes or 0, max(peak_bytes - held_bytes - state, 0))
    return round(peak_bytes + (growth - 1) * (state + gradients))
