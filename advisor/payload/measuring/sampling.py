"""One robust time from many samples."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from .clocks import Clock, Launch

SAMPLE_S = 2e-3
NUM_SAMPLES = 7
MOST_SAMPLES = 21
WARM_UPS = 10
STEADY = 0.05
NARROW = 0.02


@dataclass(frozen=True)
class Sampled:
    """Median seconds of a call, and the median absolute deviation of the samples over it."""

    time_s: float
    spread: float
    num_samples: int


def sample(launch: Launch, clock: Clock) -> Sampled:
    """Time a call: warm up until two times agree, then the median of seven samples or more.

    A sample is as many calls as take 2 ms. The median leaves out what something else disturbed; where
    samples scatter, more are taken.
    """
    num_calls = _warm_up(launch, clock)
    samples: list[float] = []
    while len(samples) < MOST_SAMPLES:
        samples += [clock.time_s(launch, num_calls) for _ in range(NUM_SAMPLES)]
        time_s, spread = summary(samples)
        if spread <= NARROW:
            break
    return Sampled(time_s, spread, len(samples))


def summary(samples: list[float]) -> tuple[float, float]:
    """Median, and median absolute deviation over it."""
    median_s = statistics.median(samples)
    return median_s, statistics.median(abs(value - median_s) for value in samples) / median_s


def _warm_up(launch: Launch, clock: Clock) -> int:
    """How many calls make a sample; libraries have chosen their kernels and clocks have risen then."""
    # The first call loads kernels.
    clock.time_s(launch, 1)
    before_s = clock.time_s(launch, 1)
    for _ in range(WARM_UPS):
        num_calls = calls_per_sample(before_s, clock.most_calls)
        now_s = clock.time_s(launch, num_calls)
        is_steady = abs(now_s - before_s) <= STEADY * before_s
        before_s = now_s
        if is_steady:
            break
    return calls_per_sample(before_s, clock.most_calls)


def calls_per_sample(call_s: float, most: int) -> int:
    """So many calls take 2 ms, at least one and at most ``most``.

    >>> calls_per_sample(1e-3, 200), calls_per_sample(1e-6, 200), calls_per_sample(1.0, 200)
    (2, 200, 1)
    """
    return max(1, min(most, math.ceil(SAMPLE_S / max(call_s, 1e-9))))
