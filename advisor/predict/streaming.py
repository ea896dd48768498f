"""Seconds of kernels in 16 bits that stream through memory, all those of a trace at once.

The formula and its source: ``advisor.operators.cycles``. A script in mixed precision has hundreds of them for
each GPU that is asked about, so what does not depend on the GPU is worked out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import FittedConstants, GpuSpec, Op
from advisor.operators.cycles import StreamCost, stream_time_s
from advisor.operators.registry import family_of
from advisor.predict.distinct import Same
from advisor.predict.learned.model import CallTimes
from advisor.predict.roofline import KERNEL_FLOOR_S

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Streams:
    """N operators of a sequence that stream, a column for each fact.

    Attributes:
        index: where they stand in the sequence, [N].
        moved_bytes: with each pass over them, [N].
        cycles: of one SM, [N].
        costs: of the distinct kinds among them.
        cost_index: which of them each has, [N].
        bandwidths: the fitted constant of each one's memory traffic.
    """

    index: NDArray[np.int64]
    moved_bytes: Floats
    cycles: Floats
    costs: tuple[StreamCost, ...]
    cost_index: NDArray[np.int64]
    bandwidths: tuple[str, ...]


def stream_times(ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants) -> CallTimes:
    """One call of each operator on ``gpu``, as far as it streams."""
    streams = _streams_of(Same(ops))
    bytes_per_s = np.array(
        [constants.fractions[name] * gpu.memory_bytes_per_s for name in streams.bandwidths]
    )
    sigmas = np.array([cost.sigma_on(gpu) for cost in streams.costs])
    time_s, sigma = np.full((2, len(ops)), np.nan)
    work = streams.moved_bytes, streams.cycles
    time_s[streams.index] = stream_time_s(KERNEL_FLOOR_S, *work, gpu, bytes_per_s)
    sigma[streams.index] = sigmas[streams.cost_index]
    return CallTimes(time_s=time_s, sigma=sigma)


@lru_cache(maxsize=4)
def _streams_of(same: Same) -> _Streams:
    families = [family_of(op) for op in same.ops]
    each = [family.stream(op) for op, family in zip(same.ops, families, strict=True)]
    known = [(i, stream) for i, stream in enumerate(each) if stream is not None]
    kinds = {id(stream.cost): stream.cost for _, stream in known}
    place = {kind: i for i, kind in enumerate(kinds)}
    return _Streams(
        index=np.array([i for i, _ in known], np.int64),
        moved_bytes=np.array([stream.moved_bytes for _, stream in known]),
        cycles=np.array([stream.cycles for _, stream in known]),
        costs=tuple(kinds.values()),
        cost_index=np.array([place[id(stream.cost)] for _, stream in known], np.int64),
        bandwidths=tuple(families[i].bandwidth for i, _ in known),
    )
