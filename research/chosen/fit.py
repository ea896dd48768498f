"""Panels -> what is known of prices beside a quote: ratios of families, and drift of the cheapest by age.

What is bought is the cheapest place, so it is the cheapest place's later price that is learned from: the mean
place says nothing about the minimum of many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.core.values import Interval, Market
from advisor.pricing.expected_prices import ANY, PriceDrift, PriceModel
from research.chosen.panels import Array, Indices, Panel, cheapest

AGES_DAYS = (7, 14, 30, 60, 90, 180, 270, 360, 450)
FAMILY_PLACES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
EVERY_DATE = 4  # from which the number of places that a family counts for is learned: dates are much alike
TAUS_DAYS = (150, 300, 450, 600, 900, 1350, 2000, 4000)
HALF_LIFE_DAYS = 300
LEAST_DATES = 4
# Judged, not fitted: until July 2026 the record holds one place near the floor, which rose by a fifth within
# a month and fell again. It may be one without machines, so its quote counts half.
NEAR_FLOOR_WEIGHT = 0.5
WEEK_DAYS, HALF_YEAR_DAYS = 7, 182
MOVES_DAYS = 90
# Student's t at 0.9 by degrees of freedom, over the normal's: few windows make a spread itself uncertain.
_DEGREES = np.array([1.0, 2, 3, 4, 5, 6, 8, 10, 20, 1e9])
_T90 = np.array([3.078, 1.886, 1.638, 1.533, 1.476, 1.44, 1.397, 1.372, 1.325, 1.2816])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Cheapest places of one age: logarithms [n] over the on-demand price at the time of the quote."""

    quoted: Array
    """The quote."""
    family: Array
    """The median of its family."""
    moves: Array
    """How far its GPU's prices move beside those of all."""
    paid: Array
    """What was true at that age."""
    days: Indices
    """When it was true."""
    num_windows: float
    """How many windows of that age the record holds side by side, as far as it counts: its GPUs share them,
    since over half a year they move together (research/docs/methods/prices.md)."""

    @property
    def weights(self) -> Array:
        """The newest counts 1: what a price list did lately tells more of what it will do."""
        return np.asarray(np.exp2((self.days - self.days.max()) / HALF_LIFE_DAYS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Drift of a market with the number of quotes behind each age; 0 for age 0."""

    drift: PriceDrift
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


def moves_of(panel: Panel) -> Mapping[str, float]:
    """How far spot prices of a GPU move in a quarter of a year, up or down, beside those of all GPUs.

    What fell far may rise as far. Shrunk towards 1 as `family_ratios` are towards all of the provider.
    """
    pairs = list(panel.pairs(MOVES_DAYS))
    if not pairs:
        return {}
    thens, nows = np.array(pairs).T
    moved = np.abs(np.log(panel.spot[:, nows] / panel.spot[:, thens]))
    weights = np.exp2((panel.days[nows] - panel.days[-1]) / HALF_LIFE_DAYS)
    means, half_years = {}, {}
    for gpu in sorted(set(panel.gpus)):
        rows = moved[[name == gpu for name in panel.gpus]]
        dates = np.flatnonzero(np.isfinite(rows).any(axis=0))
        if dates.size:
            means[gpu] = float(np.average(np.nanmean(rows[:, dates], axis=0), weights=weights[dates]))
            days = panel.days[nows[dates]]
            half_years[gpu] = (days[-1] - days[0] + WEEK_DAYS) / HALF_YEAR_DAYS
    usual = float(np.mean(list(means.values()))) if means else 0.0
    return {
        gpu: (half_years[gpu] * mean / usual + 1) / (half_years[gpu] + 1)
        for gpu, mean in means.items()
        if usual
    }


def _interval(logs: Array) -> Interval:
    p10, p50, p90 = np.exp(logs).tolist()
    return Interval(p10=p10, p50=p50, p90=p90)


def other_places(panel: Panel, column: int) -> tuple[Array, Array]:
    """Of each row [n] at a date: the median over on-demand in its other places, and their number."""
    with np.errstate(invalid="ignore"):
        logs = np.log(panel.spot[:, column] / panel.on_demand[:, column])
    rows_of: dict[str, list[int]] = {}
    for row in np.flatnonzero(np.isfinite(logs)).tolist():
        rows_of.setdefault(panel.machines[row][0], []).append(row)
    middle, counts = np.full(len(logs), np.nan), np.zeros(len(logs))
    for rows in rows_of.values():
        for row in rows if len(rows) > 1 else ():
            middle[row] = np.median([logs[other] for other in rows if other != row])
            counts[row] = len(rows) - 1
    return middle, counts


def _family_logs(panel: Panel) -> Array:
    """The logarithm of the record's median over on-demand, of the GPU of each row."""
    ratios = {gpu: math.log(ratio.p50) for gpu, (ratio, _) in family_ratios(panel).items()}
    return np.array([ratios.get(gpu, math.nan) for gpu in panel.gpus])


def _shrunk(middle: Array, counts: Array, family: Array, family_places: float) -> Array:
    """To what a price returns: its machine's other places, shrunk towards its GPU's record."""
    shrunk = (counts * np.nan_to_num(middle) + family_places * family) / (counts + family_places)
    return np.where(counts > 0, shrunk, family)


def family_places(panel: Panel) -> float:
    """How many other places of a machine its GPU's record counts for.

    Of least mean absolute error where each place in turn is foretold by the others at the same date.
    """
    family = _family_logs(panel)
    columns = np.flatnonzero(np.isfinite(panel.spot).any(axis=0))[::EVERY_DATE].tolist()
    if not columns:
        return FAMILY_PLACES[0]
    middle, counts = np.stack([other_places(panel, column) for column in columns], axis=1)
    true = np.log(panel.spot[:, columns] / panel.on_demand[:, columns]).T

    def error(places: float) -> float:
        off = np.abs(true - _shrunk(middle, counts, family, places))
        return float(np.nanmean(off[counts > 0])) if (counts > 0).any() else 0.0

    return min(FAMILY_PLACES, key=error)


def spot_samples(panel: Panel, ages: Iterable[int]) -> dict[int, Sample]:
    """By age: what the cheapest places came to cost, and the cheapest of all but these.

    Not every user may rent in the cheapest region.
    """
    family, places, moves = _family_logs(panel), family_places(panel), moves_of(panel)
    fewer = panel.without_extreme(dearest=False)
    panels = [panel, fewer] if np.isfinite(fewer.spot).any() else [panel]
    return _samples(
        panels,
        lambda one: one.spot,
        ages,
        np.array([moves.get(gpu, 1.0) for gpu in panel.gpus]),
        lambda one, column: _shrunk(*other_places(one, column), family, places),
    )


def on_demand_samples(panel: Panel, ages: Iterable[int]) -> dict[int, Sample]:
    """The same for on-demand prices, which have no family to return to."""
    nothing = np.full(len(panel.machines), math.nan)
    return _samples([panel], lambda one: one.on_demand, ages, np.ones(len(nothing)), lambda *_: nothing)


def _samples(
    panels: Sequence[Panel],
    prices_of: Callable[[Panel], Array],
    ages: Iterable[int],
    moves: Array,
    centre_at: Callable[[Panel, int], Array],
) -> dict[int, Sample]:
    centres: dict[tuple[int, int], Array] = {}
    samples = {}
    for age in ages:
        parts = []
        for i, panel in enumerate(panels):
            prices = prices_of(panel)
            for then, now in panel.pairs(age):
                known = np.where(np.isfinite(prices[:, now]), prices[:, then], np.nan)
                rows = cheapest(known, panel.machines)
                if not rows.size:
                    continue
                if (i, then) not in centres:
                    centres[i, then] = centre_at(panel, then)
                base, day = np.log(panel.on_demand[rows, then]), np.full(rows.size, panel.days[now])
                logs = np.log(known[rows]) - base, np.log(prices[rows, now]) - base
                parts.append((logs[0], centres[i, then][rows], moves[rows], logs[1], day))
        # A record of a few snapshots has no more dates to ask for.
        if len(parts) >= (LEAST_DATES if len(panels[0].days) >= LEAST_DATES else 1):
            columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
            span_days = min(_span_days(panels[0], prices_of(panels[0])), HALF_LIFE_DAYS / math.log(2))
            names = ("quoted", "family", "moves", "paid", "days")
            samples[age] = Sample(**dict(zip(names, columns, strict=True)), num_windows=span_days / age)
    return samples


def _span_days(panel: Panel, prices: Array) -> float:
    days = panel.days[np.isfinite(prices).any(axis=0)]
    return float(days[-1] - days[0])


def fit_drift(samples: Mapping[int, Sample], *, has_family: bool) -> Fitted:
    """Weight and spread by age.

    The weight is exp(-age / tau), with the tau of least mean absolute error over all ages. The spread is that
    of what is left beside that of the distance, for a GPU that moves as all do, by Student's t for the number
    of windows, and never falls with age.

    Args:
        samples: by age.
        has_family: whether there is something to return to; without it the quote stands for itself.
    """
    ages = sorted(samples)
    if not ages:
        return Fitted(drift=PriceDrift(), counts=(0,))
    tau_days = min(TAUS_DAYS, key=lambda tau: _error(samples, tau)) if has_family else math.inf
    down, up = [0.0], [0.0]
    for age in ages:
        left = _beside_distance(samples[age], age, tau_days) / samples[age].moves
        widening = student_over_normal(samples[age].num_windows)
        low, high = (weighted_quantiles(left, samples[age].weights, (0.1, 0.9)) * widening).tolist()
        down.append(min(down[-1], low))
        up.append(max(up[-1], high))
    drift = PriceDrift(
        age_days=(0.0, *map(float, ages)),
        weight=(1.0, *(math.exp(-age / tau_days) for age in ages)),
        down=tuple(down),
        up=tuple(up),
    )
    return Fitted(drift=drift, counts=(0, *(samples[age].paid.size for age in ages)))


def _error(samples: Mapping[int, Sample], tau_days: float) -> float:
    errors = [
        np.average(np.abs(_left(sample, age, tau_days)), weights=sample.weights)
        for age, sample in samples.items()
    ]
    return float(np.mean(errors))


def weighted_quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    """Quantiles of values that count for so much; between two of them straight.

    >>> weighted_quantiles(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), [0.5]).tolist()
    [2.0]
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order]) - weights[order] / 2
    return np.interp(levels, below / weights.sum(), values[order])


def _left(sample: Sample, age_days: float, tau_days: float) -> Array:
    """What was paid less what was expected, as likely.py expects it."""
    if math.isinf(tau_days):
        return sample.paid - sample.quoted
    weight = math.exp(-age_days / tau_days)
    expected = np.maximum(sample.quoted, weight * sample.quoted + (1 - weight) * sample.family)
    return np.asarray(sample.paid - expected)


def _beside_distance(sample: Sample, age_days: float, tau_days: float) -> Array:
    """What was left over beyond the spread that a quote's distance from its family has: squares add up."""
    left = _left(sample, age_days, tau_days)
    if math.isinf(tau_days):
        return left
    distance = np.maximum(sample.family - sample.quoted, 0.0)
    apart = math.sqrt(1 - math.exp(-2 * age_days / tau_days)) * distance
    return np.where(left > 0, np.sqrt(np.maximum(left**2 - apart**2, 0.0)), left)


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
        moves={(panel.provider, gpu): moves for gpu, moves in moves_of(panel).items()},
        drift={(ANY, market): drift.drift for market, drift in drifts_of(panel).items()},
        near_floor_weight=NEAR_FLOOR_WEIGHT,
        family_places=family_places(panel),
    )
