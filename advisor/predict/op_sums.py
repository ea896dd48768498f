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
    columns, time_s = times.columns, times.time_s
    by_method = np.bincount(times.methods, weights=time_s, minlength=len(METHODS))
    by_word = np.bincount(columns.word_index, weights=time_s)
    return OpSums(
        time_s=time_s,
        by_phase=phases_s(times),
        sigma=sigma_of(time_s.tolist(), times.shared_sigma.tolist()),
        by_family=dict(zip(columns.words, by_word.tolist(), strict=True)),
        by_operator={
            f"{columns.names[name]} ({METHODS[method]})": seconds for name, method, seconds in _named(times)
        },
        by_method=dict(zip(METHODS, by_method.tolist(), strict=True)),
    )


def phases_s(times: OpTimes) -> Mapping[Phase, float]:
    """Seconds of the operators of each phase."""
    backward, optimizer = times.columns.is_backward, times.columns.is_optimizer
    members = {Phase.FORWARD: ~(backward | optimizer), Phase.BACKWARD: backward, Phase.OPTIMIZER: optimizer}
    return {phase: float(times.time_s[member].sum()) for phase, member in members.items()}


def _named(times: OpTimes) -> Iterator[tuple[int, int, float]]:
    """Name, method and seconds of operators that have both in common, in the order in which they come."""
    calls = times.columns.name_index * len(METHODS) + times.methods
    sums = np.bincount(calls, weights=times.time_s)
    distinct, first = np.unique(calls, return_index=True)
    for call in distinct[np.argsort(first)].tolist():
        yield *divmod(call, len(METHODS)), float(sums[call])
