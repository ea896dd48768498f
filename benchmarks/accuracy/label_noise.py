"""How far a measured iteration is from the sum of its own operators, measured on the same GPU.

Where the two disagree, the label says as much about the measurement as about a prediction of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.accuracy.fx_ops import kind_of
from benchmarks.accuracy.op_traces import OpTrace
from benchmarks.accuracy.rows import Measured

CLEAN_WITHIN = 0.06
CLEAN, NOISY, UNKNOWN = "clean", "noisy", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNoise:
    """Sum of the operators / measured pass - 1; None where the pass was not timed apart."""

    iteration: float
    """Of the whole iteration, which is what a prediction is held against."""
    forward: float | None
    backward: float | None

    @property
    def label(self) -> str:
        """``clean`` if operators and iteration agree within 6 %, else ``noisy``."""
        return CLEAN if abs(self.iteration) <= CLEAN_WITHIN else NOISY


def noise_of(row: Measured, traces: Sequence[OpTrace]) -> LabelNoise | None:
    """The noise of a row; None where no trace of its GPU and workload exists."""
    for trace in traces:
        if (trace.gpu, trace.workload) == (row.gpu.name, row.workload):
            forward_s, backward_s = pass_times_s(trace)
            return LabelNoise(
                iteration=(forward_s + backward_s) / row.measured_s - 1,
                forward=None if row.forward_s is None else forward_s / row.forward_s - 1,
                backward=None if row.backward_s is None else backward_s / row.backward_s - 1,
            )
    return None


def pass_times_s(trace: OpTrace) -> tuple[float, float]:
    """Seconds of all operators forward, and backward with the accumulation of gradients (0 in inference).

    What a view or a shape takes beyond the floor is the host's, which an iteration hides behind its kernels.
    """
    nodes = [node for node in trace.nodes if kind_of(node)]
    forward_s = sum(node.count * node.forward_s for node in nodes)
    if trace.workload.mode != "train":
        return forward_s, 0.0
    return forward_s, sum(node.count * (node.backward_s + node.accumulate_s) for node in nodes)
