"""The backtest: choose by what was known, pay what was true.

At each date of a record, all offers are priced from a snapshot of a given age by a model that was fitted on
earlier dates alone. A machine type's cheapest place is chosen, or the cheapest of all machines for a job on
which each machine has a speed of its own. What that place really cost on the date is compared with what was
expected, and with the quote, which is the rule of the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Market, Offer, Price
from advisor.pricing.expected_prices import OnDemand, PriceModel, SpotQuotes, likely_prices
from research.chosen.fit import model_of
from research.chosen.panels import Array, Indices, Panel, cheapest

AGES_DAYS = (0, 30, 90, 180, 450)
# The first fit needs a year of prices; later ones follow every eight versions, about two months.
LEAST_RECORD_DAYS, REFIT_EVERY = 365, 8
LEAST_WINDOW_DAYS = 30
# Jobs on which machines differ in speed for their price, log-normally: any machine may be the best for some.
NUM_JOBS, SIGMA_SPEED = 20, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One place that was chosen."""

    day: int
    by: str
    paid_usd_per_h: float
    expected_usd_per_h: float
    """P50."""
    most_usd_per_h: float
    """P90."""
    quoted_usd_per_h: float
    """Of the place that the minimum of the quotes chooses, which may be another."""
    quoted_paid_usd_per_h: float
    """What that one cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What choices of one kind came to."""

    num_choices: int
    num_dates: int
    median: float
    coverage: float
    coverage_se: float | None
    """With windows as long as the quotes are old drawn as wholes; None of one window alone."""
    quoted_median: float
    quoted_p90: float


def verdict(choices: Sequence[Choice], window_days: int) -> Verdict:
    """Median of paid over expected, share within p90, and the same of the rule of the minimum.

    Args:
        choices: of one kind.
        window_days: in which choices rest on the same moves of prices, and so are one piece of evidence.
    """
    paid = np.array([choice.paid_usd_per_h for choice in choices])
    most = np.array([choice.most_usd_per_h for choice in choices])
    covered = paid <= most * (1 + 1e-9)
    days = np.array([choice.day for choice in choices])
    over_quote = [choice.quoted_paid_usd_per_h / choice.quoted_usd_per_h for choice in choices]
    return Verdict(
        num_choices=len(choices),
        num_dates=len({choice.day for choice in choices}),
        median=float(np.median(paid / [choice.expected_usd_per_h for choice in choices])),
        coverage=float(np.mean(covered)),
        coverage_se=_standard_error(covered, (days - days.min()) // max(window_days, LEAST_WINDOW_DAYS)),
        quoted_median=float(np.median(over_quote)),
        quoted_p90=float(np.quantile(over_quote, 0.9)),
    )


def _standard_error(covered: NDArray[np.bool_], windows: Indices) -> float | None:
    """Of a share whose windows are drawn whole: the ratio estimator of cluster samples (Cochran 1977)."""
    counts, hits = np.bincount(windows), np.bincount(windows, weights=covered)
    counts, hits = counts[counts > 0], hits[counts > 0]
    if len(counts) < 2:
        return None
    residuals = hits - counts * covered.mean()
    return math.sqrt(len(counts) / (len(counts) - 1) * float(residuals @ residuals)) / len(covered)


def backtest(
    panel: Panel,
    market: Market,
    age_days: int,
    models: dict[int, PriceModel],
    *,
    every: int = 1,
    lag: bool = False,
    run_days: int = 0,
    learned_from: Panel | None = None,
) -> Iterator[Choice]:
    """Choices at the dates of a record, by models of earlier dates.

    Args:
        panel: the record.
        market: on-demand or spot.
        age_days: of the snapshot.
        models: of the record, by the column at which each was fitted; those that are missing are added.
        every: judge every so many dates.
        lag: fit on nothing newer than the snapshot, as if the whole installation were that old.
        run_days: what is paid is the mean over a run of so many days, which the record must hold.
        learned_from: another record of the same dates; this one if None.
    """
    prices = panel.spot if market is Market.SPOT else panel.on_demand
    first = int(panel.days[np.isfinite(prices).any(axis=0)][0]) + LEAST_RECORD_DAYS
    for then, now in list(panel.pairs(age_days))[::every]:
        known_until = then if lag else now
        fit_at = known_until - known_until % REFIT_EVERY
        if panel.days[fit_at] < first:
            continue
        if fit_at not in models:
            models[fit_at] = model_of((learned_from or panel).before(int(panel.days[fit_at])))
        end = int(np.searchsorted(panel.days, int(panel.days[now]) + run_days, side="right"))
        if panel.days[now] + run_days <= panel.days[-1]:
            paid = prices[:, now:end].mean(axis=1)
            yield from _choices(panel, prices, market, then, now, models[fit_at], paid, run_days)


def replay(panel: Panel, model: PriceModel, age_days: int) -> Iterator[Choice]:
    """Choices on spot at the dates of a record that the model has never seen."""
    for then, now in panel.pairs(age_days):
        yield from _choices(panel, panel.spot, Market.SPOT, then, now, model, panel.spot[:, now])


def _choices(
    panel: Panel,
    prices: Array,
    market: Market,
    then: int,
    now: int,
    model: PriceModel,
    paid: Array,
    run_days: float = 0.0,
) -> Iterator[Choice]:
    """Choices by quotes of column ``then``; what was ``paid`` [rows] is NaN where nobody knows."""
    rows = np.flatnonzero(np.isfinite(prices[:, then]) & np.isfinite(paid))
    if not rows.size:
        return
    expected = _expected(panel, prices, rows, market, then, now, model)
    counted = np.full(len(prices), np.nan)
    counted[rows] = [price.counted_usd_per_h for price in expected]
    quoted = np.full(len(prices), np.nan)
    quoted[rows] = prices[rows, then]
    by_row = dict(zip(rows.tolist(), expected, strict=True))
    places = zip(cheapest(counted, panel.machines), cheapest(quoted, panel.machines), strict=True)
    jobs = zip(_for_jobs(panel, counted, then), _for_jobs(panel, quoted, then), strict=True)
    for by, pairs in (("machine", places), ("job", jobs)):
        for chosen, least in pairs:
            price = by_row[int(chosen)]
            yield Choice(
                day=int(panel.days[now]),
                by=by,
                paid_usd_per_h=float(paid[chosen]),
                expected_usd_per_h=price.usd_per_h.p50,
                most_usd_per_h=price.p90_over(run_days),
                quoted_usd_per_h=float(prices[least, then]),
                quoted_paid_usd_per_h=float(paid[least]),
            )


def _expected(
    panel: Panel, prices: Array, rows: Indices, market: Market, then: int, now: int, model: PriceModel
) -> tuple[Price, ...]:
    at = moment(int(panel.days[then]))
    offers = [_offer(panel, row, market, float(prices[row, then]), at) for row in rows.tolist()]
    return likely_prices(
        offers,
        now=moment(int(panel.days[now])),
        on_demand=on_demand_at(panel, then),
        spot=spot_at(panel, then),
        model=model,
    )


def _offer(panel: Panel, row: int, market: Market, usd_per_h: float, at: datetime) -> Offer:
    instance_type, place = panel.machines[row]
    return Offer(
        provider=panel.provider, instance_type=instance_type, region=place, zone=None, gpu=panel.gpus[row],
        num_gpus=1, market=market, list_usd_per_h=usd_per_h, retrieved_at=at, source="a record",
    )  # fmt: skip


def on_demand_at(panel: Panel, column: int) -> OnDemand:
    """What the panel lists on one date."""
    listed = panel.on_demand[:, column].tolist()
    return {
        (panel.provider, *machine): usd
        for machine, usd in zip(panel.machines, listed, strict=True)
        if not math.isnan(usd)
    }


def spot_at(panel: Panel, column: int) -> SpotQuotes:
    """What the panel quotes for spot on one date."""
    quotes: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for (name, place), usd in zip(panel.machines, panel.spot[:, column].tolist(), strict=True):
        if not math.isnan(usd):
            quotes.setdefault((panel.provider, name), {})[place, ""] = usd
    return quotes


def moment(day: int) -> datetime:
    """The first moment of a day of a panel."""
    return datetime.min.replace(tzinfo=UTC) + timedelta(days=day - 1)


def _for_jobs(panel: Panel, usd_per_h: Array, then: int) -> Iterator[int]:
    """For each job the row of least price over speed; the same jobs for the same date."""
    listed: dict[str, list[float]] = {}
    for (name, _), usd in zip(panel.machines, panel.on_demand[:, then].tolist(), strict=True):
        listed.setdefault(name, []).append(usd)
    worth = {name: np.nanmedian(usd) if np.isfinite(usd).any() else np.nan for name, usd in listed.items()}
    rng = np.random.default_rng(then)
    for _ in range(NUM_JOBS):
        speed = {name: usd * math.exp(SIGMA_SPEED * rng.standard_normal()) for name, usd in worth.items()}
        over_speed = usd_per_h / np.array([speed[name] for name, _ in panel.machines])
        yield int(np.nanargmin(over_speed))
