"""Panels -> what is known of prices beside a quote: ratios of families, and drift of the cheapest by age.

What is bought is the cheapest place, so it is the cheapest place's later price that is learned from: the mean
place says nothing about the minimum of many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from advisor.core.values import Interval, Market
from advisor.pricing.catalog.price_drift import ANY, Drift, PriceModel
from research.chosen.panels import Array, Panel, cheapest

AGES_DAYS = (7, 14, 30, 60, 90, 180, 270, 360, 450)
TAUS_DAYS = (150, 300, 450, 600, 900, 1350, 2000, 4000)
LEAST_DATES = 4
WEEK_DAYS, HALF_YEAR_DAYS = 7, 182
# Student's t at 0.9 by degrees of freedom, over the normal's: few windows make a spread itself uncertain.
_DEGREES = np.array([1.0, 2, 3, 4, 5, 6, 8, 10, 20, 1e9])
_T90 = np.array([3.078, 1.886, 1.638, 1.533, 1.476, 1.44, 1.397, 1.372, 1.325, 1.2816])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Cheapest places of one age: logarithms [n] over the on-demand price at the time of the quote.

    Attributes:
        quoted: the quote.
        family: the median of its family.
        paid: what was true at that age.
        num_windows: how many windows of that age the record holds side by side.
    """

    quoted: Array
    family: Array
    paid: Array
    num_windows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Drift of a market with the number of quotes behind each age; 0 for age 0."""

    drift: Drift
    counts: tuple[int, ...]


def family_ratios(panel: Panel) -> Mapping[str, tuple[Interval, int]]:
    """Spot over on-demand by GPU, `ANY` for all, each with its number of prices.

    A family is shrunk towards all of the provider: h half-years of it count h / (h + 1), and a snapshot a
    week. Its regions move together, so that more of them say little more.
    """
    ratios = np.log(np.minimum(panel.spot / panel.on_demand, 1.0))
    every = ratios[np.isfinite(ratios)]
    if not every.size:
        return {}
    overall = np.quantile(every, (0.1, 0.5, 0.9))
    by_family = {ANY: (_interval(overall), int(every.size))}
    for gpu in sorted(set(panel.gpus)):
        rows = ratios[[name == gpu for name in panel.gpus]]
        known = np.isfinite(rows)
        if known.any():
            days = panel.days[known.any(axis=0)]
            half_years = (days[-1] - days[0] + WEEK_DAYS) / HALF_YEAR_DAYS
            own = np.quantile(rows[known], (0.1, 0.5, 0.9))
            logs = (half_years * own + overall) / (half_years + 1)
            by_family[gpu] = (_interval(logs), int(known.sum()))
    return by_family


def _interval(logs: Array) -> Interval:
    p10, p50, p90 = np.exp(logs).tolist()
    return Interval(p10=p10, p50=p50, p90=p90)


def spot_samples(panel: Panel, ages: Iterable[int]) -> dict[int, Sample]:
    """By age: what the cheapest places came to cost."""
    ratios = {gpu: math.log(ratio.p50) for gpu, (ratio, _) in family_ratios(panel).items()}
    family = np.array([ratios.get(gpu, math.nan) for gpu in panel.gpus])
    return _samples(panel, panel.spot, family, ages)


def on_demand_samples(panel: Panel, ages: Iterable[int]) -> dict[int, Sample]:
    """The same for on-demand prices, which have no family to return to."""
    return _samples(panel, panel.on_demand, np.full(len(panel.machines), math.nan), ages)


def _samples(panel: Panel, prices: Array, family: Array, ages: Iterable[int]) -> dict[int, Sample]:
    samples = {}
    for age in ages:
        parts = []
        for then, now in panel.pairs(age):
            known = np.where(np.isfinite(prices[:, now]), prices[:, then], np.nan)
            rows = cheapest(known, panel.machines)
            if rows.size:
                base = panel.on_demand[rows, then]
                parts.append((known[rows] / base, np.exp(family[rows]), prices[rows, now] / base))
        # A record of a few snapshots has no more dates to ask for.
        if len(parts) >= (LEAST_DATES if len(panel.days) >= LEAST_DATES else 1):
            quoted, middle, paid = (np.log(np.concatenate(column)) for column in zip(*parts, strict=True))
            span = _span_days(panel, prices)
            samples[age] = Sample(quoted=quoted, family=middle, paid=paid, num_windows=span / age)
    return samples


def _span_days(panel: Panel, prices: Array) -> float:
    days = panel.days[np.isfinite(prices).any(axis=0)]
    return float(days[-1] - days[0])


def fit_drift(samples: Mapping[int, Sample], *, has_family: bool) -> Fitted:
    """Weight and spread by age.

    The weight is exp(-age / tau), with the tau of least mean absolute error over all ages. The spread is that
    of what is left, by Student's t for the number of windows, and never falls with age.

    Args:
        samples: by age.
        has_family: whether there is something to return to; without it the quote stands for itself.
    """
    ages = sorted(samples)
    if not ages:
        return Fitted(drift=Drift(), counts=(0,))
    tau_days = min(TAUS_DAYS, key=lambda tau: _error(samples, tau)) if has_family else math.inf
    down, up = [0.0], [0.0]
    for age in ages:
        left = _left(samples[age], age, tau_days)
        widening = student_over_normal(samples[age].num_windows)
        low, high = (np.quantile(left, (0.1, 0.9)) * widening).tolist()
        down.append(min(down[-1], low))
        up.append(max(up[-1], high))
    drift = Drift(
        age_days=(0.0, *map(float, ages)),
        weight=(1.0, *(math.exp(-age / tau_days) for age in ages)),
        down=tuple(down),
        up=tuple(up),
    )
    return Fitted(drift=drift, counts=(0, *(samples[age].paid.size for age in ages)))


def _error(samples: Mapping[int, Sample], tau_days: float) -> float:
    return float(np.mean([np.abs(_left(sample, age, tau_days)).mean() for age, sample in samples.items()]))


def _left(sample: Sample, age_days: float, tau_days: float) -> Array:
    """What was paid less what was expected, as likely.py expects it."""
    if math.isinf(tau_days):
        return sample.paid - sample.quoted
    weight = math.exp(-age_days / tau_days)
    expected = np.maximum(sample.quoted, weight * sample.quoted + (1 - weight) * sample.family)
    return np.asarray(sample.paid - expected)


def student_over_normal(degrees: float) -> float:
    """Student's t at 0.9 over the normal distribution's: how much wider a spread of so few must be taken."""
    return float(np.interp(1 / max(degrees, 1.0), 1 / _DEGREES[::-1], _T90[::-1]) / _T90[-1])


def of_one_more(count: int) -> float:
    """How much wider one more of a kind must be taken than the mean and the spread of so many say."""
    return math.sqrt(1 + 1 / count) * student_over_normal(count - 1)


def drifts_of(panel: Panel) -> dict[Market, Fitted]:
    """Drift of both markets."""
    return {
        Market.SPOT: fit_drift(spot_samples(panel, AGES_DAYS), has_family=True),
        Market.ON_DEMAND: fit_drift(on_demand_samples(panel, AGES_DAYS), has_family=False),
    }


def model_of(panel: Panel) -> PriceModel:
    """What one record says, for who judges it: families, and drift of both markets."""
    return PriceModel(
        ratios={(panel.provider, gpu): ratio for gpu, (ratio, _) in family_ratios(panel).items()},
        drift={(ANY, market): drift.drift for market, drift in drifts_of(panel).items()},
    )
