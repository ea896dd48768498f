"""Draws that every option shares, so that luck never decides between two of them.

Stratified: the i-th of n sorted uniforms is i / (n + 1). With n = 999 and Weibull's plotting positions
the median and the 90 % quantile of anything monotone in one draw are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from advisor.types import Interval, Quantiles

NUM_DRAWS = 999
Z90 = NormalDist().inv_cdf(0.9)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Standard normal draws, one array [n] for each thing that is uncertain on its own."""

    prediction: Array
    wait: Array
    preemption_rate: Array
    reacquire: Array
    preemption: Array


def make_draws(rng: np.random.Generator, num_draws: int = NUM_DRAWS) -> Draws:
    """Shuffled strata of the normal distribution, from a generator the caller seeds."""
    normal = NormalDist()
    strata = np.array([normal.inv_cdf(i / (num_draws + 1)) for i in range(1, num_draws + 1)])
    return Draws(
        prediction=strata,
        wait=rng.permutation(strata),
        preemption_rate=rng.permutation(strata),
        reacquire=rng.permutation(strata),
        preemption=rng.permutation(strata),
    )


def log_normal(interval: Interval, z: Array) -> Array:
    """Values of a two-piece log-normal that has these three quantiles; p10 and p50 above 0."""
    below = np.log(interval.p50 / interval.p10) / Z90
    above = np.log(interval.p90 / interval.p50) / Z90
    spread = np.exp(np.where(z < 0, below, above) * z)
    return np.asarray(interval.p50 * spread, dtype=np.float64)


def waits(quantiles: Quantiles, z: Array) -> Array:
    """Seconds of waiting: log-normal, or half normal where the median wait is below a second."""
    if quantiles.p50 >= 1:
        upper = quantiles.p90 / quantiles.p50
        interval = Interval(p10=quantiles.p50 / upper, p50=quantiles.p50, p90=quantiles.p90)
        return log_normal(interval, z)
    return np.asarray(np.maximum(z, 0) / Z90 * quantiles.p90, dtype=np.float64)


def quantiles_of(values: Array) -> Quantiles:
    """Median and 90 % quantile by Weibull's positions; infinite where the draws there are."""
    ordered = np.sort(values)
    return Quantiles(p50=_quantile(ordered, 0.5), p90=_quantile(ordered, 0.9))


def _quantile(ordered: Array, probability: float) -> float:
    position = probability * (len(ordered) + 1) - 1
    below = math.floor(position + 1e-9)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    share = max(position - below, 0.0)
    return low if share < 1e-9 or low == high else low + share * (high - low)
