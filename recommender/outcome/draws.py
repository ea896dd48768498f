"""Draws that every option shares, so that luck never decides between two of them.

What is wrong in a prediction is shared in part only: one GPU's time may be too long where another's is too
short. Stratified: the i-th of n sorted uniforms is i / (n + 1). With n = 999 and Weibull's plotting positions
the median and the 90 % quantile of anything monotone in one draw are exact.
"""

import math
import zlib
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from advisor.core.units import MINUTE_S
from advisor.core.values import EmpiricalWait, Interval, Quantiles, StartWait

NUM_DRAWS = 999
Z90 = NormalDist().inv_cdf(0.9)
Z_HIGHEST = NormalDist().inv_cdf(NUM_DRAWS / (NUM_DRAWS + 1))
# Correlation of the errors in log time of one network on two GPUs. Of the rows of docs/accuracy/README.md
# that differ in the GPU alone, the 48 pairs have -0.06 and the 14 with clean labels 0.32: little is shared.
SHARED_ERROR = 0.2
# Correlation of later changes of spot prices, in GCP's weekly record: one GPU in one region 0.95, in another
# region 0.3 to 0.6, other GPUs -0.2 to 0.1 (docs/methods/prices.md).
SHARED_PRICE = 0.1

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Standard normal draws, one array [n] for each thing that is uncertain on its own."""

    prediction: Array
    """What all predictions have in common."""
    wait: Array
    preemption_rate: Array
    reacquire: Array
    preemption: Array
    price: Array
    seed: int = 0
    """Of what each GPU has of its own."""
    kept: dict[tuple[str, object], Array] = field(default_factory=dict, repr=False, compare=False)
    """What was drawn for GPUs, places and waits: thousands of plans share a few."""

    def prediction_of(self, gpu: str) -> Array:
        """Draws [n] for the predictions of one GPU, the same whichever other GPUs are asked for."""
        return self._partly_own("prediction", SHARED_ERROR, gpu)

    def price_of(self, place: str) -> Array:
        """Draws [n] for the prices of one place, the same whichever other places are asked for."""
        return self._partly_own("price", SHARED_PRICE, place)

    def waits_of(self, wait_s: Quantiles | None) -> Array:
        """Draws [n] of the seconds until a machine is there; none where it is unknown."""
        if ("wait", wait_s) not in self.kept:
            drawn = np.zeros_like(self.wait) if wait_s is None else waits(wait_s, self.wait)
            self.kept["wait", wait_s] = drawn
        return self.kept["wait", wait_s]

    def _partly_own(self, what: Literal["prediction", "price"], correlation: float, name: str) -> Array:
        if (what, name) not in self.kept:
            shared: Array = getattr(self, what)
            own = np.random.default_rng([self.seed, zlib.crc32(name.encode())]).permutation(shared)
            mixed = math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own
            # Their order, on the strata: quantiles stay exact.
            drawn = np.empty_like(shared)
            drawn[np.argsort(mixed)] = _strata(len(shared))
            self.kept[what, name] = drawn
        return self.kept[what, name]


def make_draws(rng: np.random.Generator, num_draws: int = NUM_DRAWS) -> Draws:
    """Shuffled strata of the normal distribution, from a generator the caller seeds."""
    strata = _strata(num_draws)
    return Draws(
        prediction=strata,
        wait=rng.permutation(strata),
        preemption_rate=rng.permutation(strata),
        reacquire=rng.permutation(strata),
        preemption=rng.permutation(strata),
        seed=int(rng.integers(2**32)),
        price=rng.permutation(strata),  # last: what was drawn before it stays what it was
    )


@cache
def _strata(num_draws: int) -> Array:
    return np.array([NormalDist().inv_cdf(i / (num_draws + 1)) for i in range(1, num_draws + 1)])


def log_normal(interval: Interval, z: Array) -> Array:
    """Values of a two-piece log-normal that has these three quantiles; p10 and p50 above 0."""
    below = np.log(interval.p50 / interval.p10) / Z90
    above = np.log(interval.p90 / interval.p50) / Z90
    spread = np.exp(np.where(z < 0, below, above) * z)
    return np.asarray(interval.p50 * spread, dtype=np.float64)


def waits(quantiles: Quantiles, z: Array) -> Array:
    """Seconds of waiting: log-normal, or half normal where the median wait is below a second.

    The wait for a rented machine, and that of a job log, have a distribution of their own.
    """
    if isinstance(quantiles, StartWait):  # ``StartWait.after_s`` of each draw
        wait = quantiles
        p_longer = np.array([math.erfc(score) for score in (z / math.sqrt(2)).tolist()]) / 2
        log_share = np.maximum(np.log((1 - wait.p_at_once) / p_longer), 0.0)
        return np.asarray(wait.at_once_s + wait.later_p50_s * (log_share / math.log(2)) ** wait.bend)
    if isinstance(quantiles, EmpiricalWait):  # straight in log minutes over normal scores, nothing beyond
        at = [NormalDist().inv_cdf(level) for level in quantiles.levels]
        log_minutes = np.log1p(np.array(quantiles.waits_s) / MINUTE_S)
        return np.asarray(np.expm1(np.interp(z, at, log_minutes)) * MINUTE_S)
    if quantiles.p50 >= 1:
        upper = quantiles.p90 / quantiles.p50
        return log_normal(Interval(p10=quantiles.p50 / upper, p50=quantiles.p50, p90=quantiles.p90), z)
    return np.asarray(np.maximum(z, 0) / Z90 * quantiles.p90)


def quantiles_of_rows(values: Array) -> list[Quantiles]:
    """Median and 90 % quantile of each row [rows, n] by Weibull's positions; infinite where the draws are."""
    ordered = np.sort(values, axis=1)  # a sixth of the time of np.partition at these few
    rows = zip(*(_quantiles(ordered, probability) for probability in (0.5, 0.9)), strict=True)
    return [Quantiles(p50=p50, p90=p90) for p50, p90 in rows]


def _quantiles(ordered: Array, probability: float) -> list[float]:
    n = ordered.shape[1]
    position = probability * (n + 1) - 1
    below = min(max(math.floor(position + 1e-9), 0), n - 1)
    share = max(position - below, 0.0)
    low, high = ordered[:, below], ordered[:, min(below + 1, n - 1) if share > 1e-9 else below]
    with np.errstate(invalid="ignore"):  # infinity less infinity
        quantiles: list[float] = np.where(low == high, low, low + share * (high - low)).tolist()
    return quantiles


def ratio_of(values: Array, to: Array) -> Interval | None:
    """How many times others [n] draws are; None where one of either never ends."""
    if not (np.isfinite(values).all() and np.isfinite(to).all()):
        return None
    times, inverse = quantiles_of_rows(np.array([values / to, to / values]))
    return Interval(p10=1 / inverse.p90, p50=times.p50, p90=times.p90)


def chance_below(values: Array, than: Array) -> float:
    """How often draws [n] lie below others [n]; equal draws count half."""
    below, equal = np.count_nonzero(values < than), np.count_nonzero(values == than)
    return (below + 0.5 * equal) / len(than)
