"""The first steady steps of a job beside their prediction, and what the job comes to at that pace."""

from dataclasses import dataclass
from enum import StrEnum

from advisor.core.values import Interval, Quantiles

LEAST_STEPS = 60
"""Three blocks of 20: the first holds warm-up and tuning, and the median leaves it out."""
_S_PER_H = 3600.0


class Canary(StrEnum):
    """What to do where steps are slower than the p90 of their prediction."""

    GO_ON = "go-on"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a recommendation says of a job on the GPUs that it runs on."""

    step_s: Interval
    """Of one optimizer step."""
    time_s: Quantiles
    """Of the whole job: wait, start-up and training."""
    cost_usd: Quantiles
    """Of all that."""
    num_steps: int | None
    """Of the whole job; None if unknown, as is the price."""
    usd_per_h: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the first steps show."""

    expected: Expected
    step_s: float
    """Their median."""
    num_steps: int
    job_s: float | None
    """What the whole job takes at this pace; None where its length is unknown."""
    job_usd: float | None
    """What it costs then; None where its price is unknown."""

    @property
    def is_slower(self) -> bool:
        """Whether steps take longer than nine of ten were predicted to."""
        return self.step_s > self.expected.step_s.p90

    @property
    def held(self) -> bool:
        """Whether they are within p10 and p90."""
        return self.expected.step_s.p10 <= self.step_s <= self.expected.step_s.p90


def pace_of(expected: Expected, step_s: Interval | None, num_steps: int) -> Pace | None:
    """What the steps so far say of the whole job; None while there are too few.

    Only steps differ from the prediction: waiting, start-up and preemptions are taken as predicted.

    Args:
        num_steps: how many those are.
    """
    if step_s is None or num_steps < LEAST_STEPS:
        return None
    job_s = job_usd = None
    if expected.num_steps is not None:
        more_s = expected.num_steps * (step_s.p50 - expected.step_s.p50)
        job_s = expected.time_s.p50 + more_s
        if expected.usd_per_h is not None:
            job_usd = expected.cost_usd.p50 + more_s * expected.usd_per_h / _S_PER_H
    return Pace(expected=expected, step_s=step_s.p50, num_steps=num_steps, job_s=job_s, job_usd=job_usd)
