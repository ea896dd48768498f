"""Where the time of an iteration goes: what the GPU computes, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.core.input_time import WAITING
from advisor.core.values import IterationEstimate
from advisor.predict.exchange.data_parallel import COMMUNICATION
from advisor.predict.step_time import HOST, OTHERS, STAGES


def waits_s(estimate: IterationEstimate) -> Mapping[str, float]:
    """Median seconds of one iteration in which the GPU waits, by what it waits for."""
    return {
        HOST: estimate.by_operator.get(HOST, 0.0),
        OTHERS: estimate.by_operator.get(OTHERS, 0.0),
        STAGES: estimate.by_operator.get(STAGES, 0.0),
        COMMUNICATION: estimate.communication_s,
        WAITING: max(estimate.iteration_s.p50 - estimate.device_s.p50, 0.0),
    }


def computing_s(estimate: IterationEstimate) -> float:
    """Median seconds of one iteration in which the GPU computes."""
    return max(estimate.iteration_s.p50 - sum(waits_s(estimate).values()), 0.0)
