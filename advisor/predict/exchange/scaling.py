"""What several GPUs cost each other beside what they exchange, fitted to published throughputs.

All wait for the slowest: of N GPUs whose steps take times of a normal distribution it lies ``E(N)`` standard
deviations above the mean (Blom, "Statistical estimates and transformed beta-variables", 1958).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

from advisor.core.values import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Constants, fitted by ``python -m research.scaling`` (``research/docs/accuracy/scaling.md``).

    Attributes:
        slowdown: by which kernels take longer while NCCL's run beside them, as a share of their time.
        spread: standard deviation of the time in which GPUs of one job do a pass, as a share of it.
        sigma: log-normal, of what all this leaves unexplained of a step.
    """

    slowdown: float = 0.3
    spread: float = 0.06
    sigma: float = 0.057

    def waiting(self, num_gpus: int) -> float:
        """By which share of a pass the slowest of so many GPUs is later than their mean.

        >>> Scaling().waiting(1)
        0.0
        """
        return self.spread * slowest(num_gpus)


def batch_variation(trace: Trace) -> float:
    """Standard deviation over the mean of what the batches of one step hold: passes even out.

    A profiler's trace does not tell; ``spread`` and ``sigma`` hold what published jobs had of it.
    """
    return (trace.batch_variation or 0.0) / math.sqrt(trace.accumulation)


@cache
def slowest(count: int) -> float:
    """Of so many draws of a normal distribution the largest, in standard deviations above the mean."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))
