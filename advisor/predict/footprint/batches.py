"""The largest batch that one GPU can hold, sought from where a straight line would put it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

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
    none, all_of_it = need(0.0).p90, need(1.0).p90
    guess = samples * _on_a_line(none, all_of_it, limit_bytes)
    certain = _most(lambda num: need(num / samples).p90 <= limit_bytes, limit, guess)
    likely = _most(lambda num: need(num / samples).p50 <= limit_bytes, limit, samples * share)
    return LargestBatch(share=share, certain=passes * certain, likely=passes * likely)


def largest_share(need: Need, limit_bytes: float) -> float:
    """Of the profiled batch, what fits more likely than not; 0 where what no batch needs is too much."""
    guess = _PARTS * _on_a_line(need(0.0).p50, need(1.0).p50, limit_bytes)
    fits = _most(lambda parts: need(parts / _PARTS).p50 <= limit_bytes, _PARTS * _MOST_SHARE, guess)
    return fits / _PARTS


def arguments_of_largest(trace: Trace, largest: LargestBatch) -> list[str] | None:
    """The arguments with the largest batch that is likely to fit; None where none of them is the batch."""
    samples = None if trace.batch_size is None else str(trace.batch_size // trace.accumulation)
    arguments = list(trace.arguments)
    places = [
        place
        for place, (name, value) in enumerate(pairwise(arguments), start=1)
        if name.startswith("-") and "batch" in name and value == samples
    ]
    if len(places) != 1 or not largest.likely:
        return None
    arguments[places[0]] = str(largest.likely // trace.accumulation)
    return arguments


def _on_a_line(none: float, all_of_it: float, limit_bytes: float) -> float:
    """The share of the batch whose need is the limit, if it grows evenly."""
    if all_of_it <= none:
        return _MOST_SHARE if none <= limit_bytes else 0.0
    return (limit_bytes - none) / (all_of_it - none)


def _most(fits: Callable[[int], bool], limit: int, guess: float) -> int:
    """The largest number up to the limit that fits, where each smaller one does; 0 where 1 does not.

    Sought from a guess, by steps that double until they have passed it, then by halving.
    """
    low, high, step = 0, limit + 1, 1
    at = min(max(int(guess), 1), limit)
    while low < at < high:
        low, high, at = (at, high, at + step) if fits(at) else (low, at, at - step)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
