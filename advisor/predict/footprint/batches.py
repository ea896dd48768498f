"""The largest batch that one GPU can hold, by bisection on what it would need."""

from __future__ import annotations

from collections.abc import Callable

from advisor.core.values import Interval, LargestBatch, Trace

Need = Callable[[float], Interval]
"""What one GPU must hold with a share of the profiled batch in each pass."""

# A batch that is larger by more is not worth a guess.
_MOST_SHARE = 1024
# A share is found to so many parts.
_PARTS = 1000


def largest_batch(trace: Trace, need: Need, limit_bytes: float) -> LargestBatch:
    """The most samples of an iteration that fit into so much memory, its number of passes held."""
    passes = trace.accumulation
    share = largest_share(need, limit_bytes)
    if trace.batch_size is None:
        return LargestBatch(share=share, certain=None, likely=None)
    samples = max(trace.batch_size // passes, 1)

    limit = samples * _MOST_SHARE
    certain = _most(lambda num: need(num / samples).p90 <= limit_bytes, limit)
    likely = _most(lambda num: need(num / samples).p50 <= limit_bytes, limit)
    return LargestBatch(share=share, certain=passes * certain, likely=passes * likely)


def largest_share(need: Need, limit_bytes: float) -> float:
    """Of the profiled batch, what fits more likely than not; 0 where what no batch needs is too much."""
    return _most(lambda parts: need(parts / _PARTS).p50 <= limit_bytes, _PARTS * _MOST_SHARE) / _PARTS


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number up to the limit that fits, where each smaller one does; 0 where 1 does not."""
    low, high = 0, 1
    while high < limit and fits(high):
        low, high = high, min(2 * high, limit)
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
