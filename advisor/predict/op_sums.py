"""Times of the operators of a trace, added up by what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Method, Phase
from advisor.predict.interval import sigma_of
from advisor.predict.methods import METHODS, OpTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSums:
    """Seconds of one iteration's operators, the same for any number of GPUs.

    Attributes:
        time_s: of each operator, all its calls, [N].
        sigma: log-normal, of their sum.
    """

    time_s: NDArray[np.float64]
    by_phase: Mapping[Phase, float]
    sigma: float
    by_family: dict[str, float]
    by_operator: dict[str, float]
    by_method: dict[Method, float]

    @property
    def gpu_s(self) -> float:
        """Of all kernels."""
        return sum(self.by_phase.values())

    @property
    def backward_s(self) -> float:
        """Of the backward pass."""
        return self.by_phase[Phase.BACKWARD]

    @property
    def passes_s(self) -> float:
        """Of forward and backward passes."""
        return self.gpu_s - self.by_phase[Phase.OPTIMIZER]


def sums_of(times: OpTimes) -> OpSums:
    """The times of operators, added up."""
    columns = times.columns
    calls = times.methods + columns.name_index * len(METHODS)
    named = ((*divmod(call, len(METHODS)), time_s) for call, time_s in _summed(calls, times.time_s))
    by_method = {METHODS[method]: time_s for method, time_s in _summed(times.methods, times.time_s)}
    return OpSums(
        time_s=times.time_s,
        by_phase=phases_s(times),
        sigma=sigma_of(times.time_s.tolist(), times.shared_sigma.tolist()),
        by_family={columns.words[word]: s for word, s in _summed(columns.word_index, times.time_s)},
        by_operator={f"{columns.names[name]} ({METHODS[method]})": time_s for name, method, time_s in named},
        by_method=dict.fromkeys(Method, 0.0) | by_method,
    )


def phases_s(times: OpTimes) -> Mapping[Phase, float]:
    """Seconds of the operators of each phase."""
    backward, optimizer = times.columns.is_backward, times.columns.is_optimizer
    members = {Phase.FORWARD: ~(backward | optimizer), Phase.BACKWARD: backward, Phase.OPTIMIZER: optimizer}
    return {phase: float(times.time_s[member].sum()) for phase, member in members.items()}


def _summed(keys: NDArray[np.int64], times_s: NDArray[np.float64]) -> Iterator[tuple[int, float]]:
    """The seconds of each key, in the order in which they come."""
    sums = np.bincount(keys, weights=times_s)
    distinct, first = np.unique(keys, return_index=True)
    for key in distinct[np.argsort(first)].tolist():
        yield key, float(sums[key])
