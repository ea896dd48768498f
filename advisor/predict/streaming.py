"""Seconds of kernels in 16 bits that stream through memory, all those of a trace at once.

The formula and its source: ``advisor.operators.cycles``. A script in mixed precision has hundreds of them for
each GPU that is asked about, so what does not depend on the GPU is worked out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import FittedConstants, GpuSpec, Op
from advisor.operators.cycles import StreamCost, Work
from advisor.operators.registry import family_of
from advisor.predict.distinct import Same
from advisor.predict.learned.model import CallTimes
from advisor.predict.roofline import KERNEL_FLOOR_S

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Streams:
    """N operators of a sequence that stream.

    Attributes:
        index: where they stand in the sequence, [N].
        work: of each.
        costs: as ``StreamCost.costs`` orders them, [5, N].
        kinds: of the distinct kinds among them.
        kind_index: which of them each has, [N].
        bandwidths: the fitted constant of each one's memory traffic.
    """

    index: NDArray[np.int64]
    work: Work[Floats]
    costs: Floats
    kinds: tuple[StreamCost, ...]
    kind_index: NDArray[np.int64]
    bandwidths: tuple[str, ...]


def stream_times(ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants) -> CallTimes:
    """One call of each operator on ``gpu``, as far as it streams."""
    streams = _streams_of(Same(ops))
    time_s, sigma = np.full((2, len(ops)), np.nan)
    if not streams.kinds:
        return CallTimes(time_s=time_s, sigma=sigma)
    bytes_per_s = np.array(
        [constants.fractions[name] * gpu.memory_bytes_per_s for name in streams.bandwidths]
    )
    paces = [kind.pace_on(gpu) for kind in streams.kinds]
    factors, sigmas = np.array([(pace.factor, pace.sigma) for pace in paces])[streams.kind_index].T
    time_s[streams.index] = streams.work.time_s(KERNEL_FLOOR_S, gpu, bytes_per_s, streams.costs, factors)
    sigma[streams.index] = sigmas
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
        work=_columns([stream.work for _, stream in known]),
        costs=np.array([stream.cost.costs for _, stream in known]).T,
        kinds=tuple(kinds.values()),
        kind_index=np.array([place[id(stream.cost)] for _, stream in known], np.int64),
        bandwidths=tuple(families[i].bandwidth for i, _ in known),
    )


def _columns(works: Sequence[Work[float]]) -> Work[Floats]:
    return Work(
        **{each.name: np.array([getattr(work, each.name) for work in works], float) for each in fields(Work)}
    )
