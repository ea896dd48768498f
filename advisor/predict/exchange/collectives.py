"""What the ranks of a distributed script exchange, as far as its recorded collectives tell.

Data parallelism reduces every gradient; whoever reduces less, or scatters what it reduces, holds a part of
the model in each rank. A trace of such a rank says nothing about another number of ranks.
"""

from __future__ import annotations

from advisor.core.values import Collective, GpuSpec, Trace
from advisor.predict.exchange.data_parallel import ALL_REDUCE_LATENCY_S, link_bytes_per_s

# Gradients that a hook compresses to half their precision are still all gradients.
_LEAST_SHARE_REDUCED = 0.45
# One rank sends all of it.
_WHOLE = ("broadcast", "reduce", "send", "recv")


def reduced_bytes(trace: Trace) -> int | None:
    """Bytes that a rank all-reduces per iteration; None where none were recorded."""
    reductions = [c for c in trace.collectives if c.kind == "all_reduce" and c.num_bytes is not None]
    return sum((c.num_bytes or 0) * c.count for c in reductions) if reductions else None


def holds_buckets(trace: Trace) -> bool:
    """Whether the script exchanged gradients itself, so that its buckets were there when the peak was."""
    return any(c.num_bytes is not None for c in trace.collectives)


def sharded_over(trace: Trace) -> int | None:
    """Ranks that share the traced model, None where each holds all of it."""
    if trace.world_size in (None, 1):
        return None
    if trace.is_sharded:
        return trace.world_size
    if any(c.kind == "reduce_scatter" and c.world_size != 1 for c in trace.collectives):
        return trace.world_size
    all_gradients = trace.memory.gradient_bytes or 0
    reduces_all = (reduced_bytes(trace) or 0) >= _LEAST_SHARE_REDUCED * all_gradients
    return None if reduces_all or not trace.collectives else trace.world_size


def collectives_s(trace: Trace, gpu: GpuSpec) -> float:
    """Seconds of all recorded collectives in their own groups, one after the other."""
    return sum(c.count * _ring_s(c, link_bytes_per_s(gpu)) for c in trace.collectives)


def _ring_s(collective: Collective, bytes_per_s: float) -> float:
    """Seconds of one collective: a ring moves (N - 1) / N of the whole, all-reduce twice."""
    num_ranks = collective.world_size or 1
    if num_ranks == 1 or collective.num_bytes is None:
        return 0.0
    rounds = 2 if collective.kind == "all_reduce" else 1
    share = 1.0 if collective.kind in _WHOLE else (num_ranks - 1) / num_ranks
    return ALL_REDUCE_LATENCY_S + rounds * share * collective.num_bytes / bytes_per_s
