"""Habitat's way: measured operators of one GPU, each times the predicted ratio to another GPU.

An iteration is scaled for each pair of GPUs that share a workload: the origin has an operator trace, the
destination a measured iteration. ``weight`` blends it with the direct prediction, which saw no measurement:
``weight * scaled + (1 - weight) * direct``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec, Op
from benchmarks.accuracy.fx_ops import accumulate_ops, backward_ops, forward_ops
from benchmarks.accuracy.op_traces import Node, OpTrace
from benchmarks.accuracy.rows import Measured
from benchmarks.accuracy.summary import Errors, errors_of

WEIGHTS = (0.0, 0.25, 0.5, 1.0)
Seconds = Callable[[Sequence[Op], GpuSpec], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """One iteration, scaled from an origin and predicted directly."""

    origin: str
    """Name of the GPU whose operators were measured."""
    row: Measured
    scaled_s: float
    """The origin's operators times their ratios."""
    direct_s: float
    """The prediction without the origin."""

    def error(self, weight: float) -> float:
        """Relative error of the blend, positive where it is too slow."""
        blend_s = weight * self.scaled_s + (1 - weight) * self.direct_s
        return blend_s / self.row.measured_s - 1


def scaled_pairs(
    traces: Sequence[OpTrace], direct: Sequence[tuple[Measured, float]], time_s: Seconds
) -> list[Scaled]:
    """All pairs of different GPUs that share a workload.

    Args:
        traces: of the origins.
        direct: measured rows, each with its direct prediction in seconds.
        time_s: predicted seconds of each operator on a GPU.
    """
    return [
        Scaled(origin=trace.gpu, row=row, direct_s=predicted_s, scaled_s=scaled_s(trace, row.gpu, time_s))
        for trace in traces
        for row, predicted_s in direct
        if trace.workload == row.workload and trace.gpu != row.gpu.name
    ]


def scaled_s(trace: OpTrace, destination: GpuSpec, time_s: Seconds) -> float:
    """Seconds of the iteration on ``destination``; what runs nothing on the GPU counts nothing."""
    parts = [part for node in trace.nodes for part in _passes(node, trace.workload.mode) if part[1]]
    ops = [op for _, run in parts for op in run]
    first = np.cumsum([0, *(len(run) for _, run in parts[:-1])])
    measured_s = np.array([part_s for part_s, _ in parts])
    origin_s, destination_s = (
        np.add.reduceat(time_s(ops, gpu), first) for gpu in (load_gpus()[trace.gpu], destination)
    )
    return float((measured_s * destination_s / origin_s).sum())


def _passes(node: Node, mode: str) -> Iterator[tuple[float, Sequence[Op]]]:
    """Measured seconds of all calls in each pass, and what runs there."""
    yield node.count * node.forward_s, forward_ops(node)
    if mode == "train":
        yield node.count * node.backward_s, backward_ops(node)
        yield node.count * node.accumulate_s, accumulate_ops(node)


def errors_by_weight(pairs: Sequence[Scaled]) -> Mapping[float, Errors]:
    """Absolute errors of all pairs, by the weight of what was scaled."""
    return {weight: errors_of([pair.error(weight) for pair in pairs]) for weight in WEIGHTS}
