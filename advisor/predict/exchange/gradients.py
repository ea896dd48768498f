"""In which pieces data parallelism exchanges gradients, and when in the backward pass each is complete.

PyTorch DDP (Li et al., "PyTorch Distributed", PVLDB 13(12), 2020) fills a first bucket of 1 MiB and further
ones of 25 MiB in the order in which gradients become complete. A bucket takes whole tensors, so that the
gradient of a large embedding, complete at the very end, travels alone and in the open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import MIB
from advisor.core.values import Op, Phase, TensorSpec, Trace
from advisor.operators.family import base_name
from advisor.operators.work import folded_shape, tensor_bytes
from advisor.predict.distinct import Same
from advisor.predict.exchange.collectives import buckets_of_pass, exchanged_bytes, gathered_bytes
from advisor.predict.exchange.partition import updated_tensors

FIRST_BUCKET_BYTES, BUCKET_BYTES = MIB, 25 * MIB
# 1.6 TiB of gradients are as many. A file may tell any number of bytes, and none may fill our memory.
_MOST_BUCKETS = 2**16
# What is done to gradients that were made: sums of them, and what gives a tensor of the shape that it took.
_SUM, _TAKES = "add", ("mul", "div", "copy", "_to_copy")
_LEAST_S = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buckets:
    """K buckets in the order in which they are exchanged, and where in a backward pass each is complete.

    A pass is S stretches of time: each an operator, or neighbours of several calls each, as those of equal
    layers are, which take turns.

    Attributes:
        num_bytes: of each, [K].
        stretch: in which it is completed, [K].
        share: of that stretch that is over then, [K].
        stretch_of: of each operator of the trace; -1 outside the backward pass, [N].
    """

    num_bytes: tuple[float, ...]
    stretch: NDArray[np.int64]
    share: Floats
    stretch_of: NDArray[np.int64]

    def ready(self, time_s: Floats) -> Floats:
        """The share of a pass after which each is complete, [K], given the seconds of every operator, [N]."""
        inside = self.stretch_of >= 0
        num_stretches = int(self.stretch_of.max(initial=0)) + 1
        lasts_s = np.bincount(self.stretch_of[inside], weights=time_s[inside], minlength=num_stretches)
        ready_s: Floats = np.cumsum(lasts_s)[self.stretch] - (1 - self.share) * lasts_s[self.stretch]
        return ready_s / max(float(lasts_s.sum()), _LEAST_S)


def buckets_of(trace: Trace) -> Buckets:
    """The buckets of one backward pass: recorded, else as DDP would make them."""
    recorded = buckets_of_pass(trace)
    total = exchanged_bytes(trace) or sum(recorded)
    # Equal parts are cut out of one long tensor, which shows no shapes.
    is_cut = gathered_bytes(trace) is not None
    tensors = () if is_cut else tuple(updated_tensors(trace.ops, total))
    return _buckets_of(Same(trace.ops), total, recorded, trace.accumulation, tensors)


@lru_cache(maxsize=8)
def _buckets_of(
    same: Same,
    total_bytes: int,
    recorded: tuple[int, ...],
    accumulation: int,
    tensors: tuple[TensorSpec, ...],
) -> Buckets:
    backward = [(i, op) for i, op in enumerate(same.ops) if op.phase is Phase.BACKWARD]
    stretch_of = np.full(len(same.ops), -1)
    stretches = _stretches([op for _, op in backward], accumulation) if tensors else repeat(0)
    places: Sequence[tuple[int, Op]] = [(s, op) for s, (_, op) in zip(stretches, backward, strict=False)]
    stretch_of[[i for i, _ in backward]] = [stretch for stretch, _ in places]
    pieces = (
        _completed(tensors, places, accumulation) if tensors else [(0, size) for size in _pieces(total_bytes)]
    )
    stretch = np.array([place for place, _ in pieces])
    sizes = np.array([size for _, size in pieces], dtype=np.float64)
    ends = np.cumsum(sizes)
    whole = np.bincount(stretch, weights=sizes)
    rest = np.cumsum(whole)[stretch] - ends
    share = 1 - rest / np.maximum(whole[stretch], 1.0)
    last = _recorded_ends(recorded, ends) if recorded else _ddp_ends(sizes.tolist())
    num_bytes = recorded or np.diff(ends[last], prepend=0.0).tolist()
    return Buckets(
        num_bytes=tuple(num_bytes), stretch=stretch[last], share=share[last], stretch_of=stretch_of
    )


def _pieces(total_bytes: int) -> list[int]:
    """Gradients of which only the sum is known."""
    first = min(total_bytes, FIRST_BUCKET_BYTES)
    bucket = max(BUCKET_BYTES, total_bytes // _MOST_BUCKETS)
    whole, rest = divmod(total_bytes - first, bucket)
    return [first, *[bucket] * whole, *([rest] if rest else [])]


def _stretches(ops: Sequence[Op], accumulation: int) -> Iterator[int]:
    number, was_repeated = -1, False
    for op in ops:
        is_repeated = op.count > accumulation
        number += not (is_repeated and was_repeated)
        was_repeated = is_repeated
        yield number


def _completed(
    tensors: Sequence[TensorSpec], backward: Sequence[tuple[int, Op]], accumulation: int
) -> list[tuple[int, int]]:
    """The stretch that completes each tensor, and its bytes, in order.

    Operators that make one of its shape show it, the last of them if several do; what none shows is completed
    with its neighbour.
    """
    shown = _shown(backward, accumulation)
    places = (shown.get(folded_shape(tensor), []) for tensor in tensors)
    known = [of_shape.pop() if of_shape else None for of_shape in places]
    last, pieces = 0, []
    for tensor, place in zip(reversed(tensors), reversed(known), strict=True):
        last = last if place is None else place
        pieces.append((last, tensor_bytes(tensor)))
    return sorted(pieces, key=lambda piece: piece[0])


def _shown(backward: Sequence[tuple[int, Op]], accumulation: int) -> dict[tuple[int, ...], list[int]]:
    """By shape the stretches in which tensors of it are made, one a tensor and pass.

    A sum of two is the gradient of one tensor that was used twice. But where each pass except the first adds
    all tensors of a shape, it adds them to those of earlier passes. That, and how DDP scales and copies,
    makes none: the first pass does without, so a trace has such operators behind all others.
    """
    shown: dict[tuple[int, ...], list[int]] = defaultdict(list)
    sums: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for stretch, op in backward:
        name = base_name(op.name).rstrip("_")
        for output in op.outputs:
            if name == _SUM:
                sums[folded_shape(output)].append((stretch, op.count))
            elif name not in _TAKES or folded_shape(op.inputs[0]) != folded_shape(output):
                shown[folded_shape(output)] += [stretch] * op.count
    for shape, added in sums.items():
        if sum(count for _, count in added) * accumulation == len(shown[shape]) * (accumulation - 1):
            continue
        for stretch, count in added:
            del shown[shape][-2 * count :]
            shown[shape] += [stretch] * count
    return shown


def _ddp_ends(sizes: Sequence[float]) -> list[int]:
    """The last tensor of each bucket: a bucket is full as soon as it holds no less than its size."""
    ends, held, limit = [], 0.0, FIRST_BUCKET_BYTES
    for i, size in enumerate(sizes):
        held += size
        if held >= limit or i == len(sizes) - 1:
            ends.append(i)
            held, limit = 0.0, BUCKET_BYTES
    return ends


def _recorded_ends(recorded: Sequence[int], ends: Floats) -> NDArray[np.int64]:
    """The tensor in which each recorded bucket ends."""
    bounds = np.cumsum(recorded) / max(sum(recorded), 1) * ends[-1]
    indices: NDArray[np.int64] = np.minimum(np.searchsorted(ends, bounds * (1 - 1e-9)), len(ends) - 1)
    return indices
