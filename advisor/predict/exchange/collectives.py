"""What the ranks of a distributed script exchange, as far as its recorded collectives tell.

Data parallelism reduces every gradient; whoever reduces less, or scatters what it reduces, holds a part of
the model in each rank. A trace of such a rank tells of another number of ranks where it gathers whole
parameters and scatters whole gradients (`resharded`), and nothing where it exchanges activations.
"""

from __future__ import annotations

from collections.abc import Iterable

from advisor.core.values import Collective, Trace

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
    return trace.world_size if gathered_bytes(trace) or _broadcasts_state(trace) else None


def _broadcasts_state(trace: Trace) -> bool:
    return _is_sent_once(trace, sent_tensors(trace), trace.memory.gradient_bytes)


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
