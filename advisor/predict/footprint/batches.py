"""The largest batch that one GPU can hold, by bisection on what it would need."""

from __future__ import annotations

from collections.abc import Callable

from advisor.core.values import Fit, LargestBatch, MemoryEstimate, Trace

Need = Callable[[float], MemoryEstimate]
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

    def most(least: Fit) -> int:
        return passes * _most(
            lambda num: _fits(need(num / samples), limit_bytes, least), samples * _MOST_SHARE
        )

    return LargestBatch(share=share, certain=most(Fit.CERTAIN), likely=most(Fit.LIKELY))


def largest_share(need: Need, limit_bytes: float) -> float:
    """Of the profiled batch, what fits more likely than not; 0 where what no batch needs is too much."""
    parts = _most(lambda num: _fits(need(num / _PARTS), limit_bytes, Fit.LIKELY), _PARTS * _MOST_SHARE)
    return parts / _PARTS


def _fits(need: MemoryEstimate, limit_bytes: float, least: Fit) -> bool:
    fit = need.fit(limit_bytes)
    return fit is Fit.CERTAIN or fit is least


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
