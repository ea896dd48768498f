"""Fits catalogs/spot_odds.csv and catalogs/start_odds.csv to the open availability traces.

``python -m research.spot_fit --shared ../shared``. The same traces give the same bytes. What is fitted and
what is judged is written down in research/docs/methods/spot.md.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from itertools import product
from pathlib import Path

import numpy as np

from advisor.core.files import write_atomically
from advisor.core.units import HOUR_S
from advisor.core.values import Market
from advisor.pricing.instance_types import columns_of
from advisor.pricing.spot_odds import (
    SPOT_ODDS_FILE,
    START_ODDS_FILE,
    Age,
    Basis,
    MachineClass,
    Size,
    SpotOdds,
    StartOdds,
)
from recommender.outcome.spot_history import Stretch
from research.chosen.fit import of_one_more
from research.chosen.panels import Array
from research.spot_traces import Trace, read_traces

AS_OF = date(2026, 11, 22)
SOURCE = "availability traces of Stanford (2020) and SkyPilot (2022, 2023)"
# Handing out a machine that is free takes about a minute; no trace tells.
AT_ONCE_S = 60.0
# Of on-demand no trace is open. It is served before spot and from the same machines, so it waits less often.
ON_DEMAND_SHARE = 0.5
# Log-normal tails have no end, and their means would lie in it: beyond this, times the highest rate of any
# trace, no rate is believed.
_MOST_OVER_SEEN = 1.5
_LEAST_RUNS = 20
# Spread of the upper half of a normal distribution over that of the whole, from its median to its p90.
_NORMAL = statistics.NormalDist()
_UPPER_HALF = (_NORMAL.inv_cdf(0.95) - _NORMAL.inv_cdf(0.75)) / _NORMAL.inv_cdf(0.9)
# Where the likelihood of rates is looked at: from one in two months to one in three minutes.
_LOG_RATES = np.linspace(-7.5, 3.0, 211)
_MEANS, _SIGMAS = (np.arange(-3.0, 1.0, 0.02).tolist(), np.arange(0.3, 2.5, 0.02).tolist())
_CLASSES = tuple((size, age) for size in Size for age in Age)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """All classes; what the traces alone tell, and what is judged of newer GPUs."""

    spot: dict[MachineClass, SpotOdds]
    start: dict[MachineClass, StartOdds]


def log_rate(trace: Trace) -> float:
    """Of preemptions per running hour; half of one is added, since none in a short trace is no rate of 0."""
    return math.log((trace.sums.num_losses + 0.5) / trace.sums.up_h)


def log_outage(trace: Trace) -> float | None:
    """Of the mean time away in hours; None where it never was."""
    sums = trace.sums
    return math.log(sums.down_h / sums.num_outages) if sums.num_outages else None


def fit(traces: Sequence[Trace], *, as_of: date = AS_OF) -> Fit:
    """Odds of each class from these traces."""
    series = [t for t in traces if t.stretches]
    dispersions = [_dispersion(series, is_up=is_up) for is_up in (True, False)]
    rates = _rates_of(traces, dispersions[0])
    outages = _Levels(traces, [log_outage(t) for t in traces])
    shares = _Levels(traces, [1 - t.sums.share_down for t in traces])
    later = _later_waits(series)
    most_per_h = _MOST_OVER_SEEN * math.exp(max(map(log_rate, traces)))
    most_away_h = max(trace.sums.down_h / trace.sums.up_h for trace in traces)
    spot, start = {}, {}
    for which in _CLASSES:
        of_class = {"size": which[0], "age": which[1]}
        spot[which] = SpotOdds(
            **of_class,
            preemptions_per_h=math.exp(rates[which[1]][0]),
            sigma_rate=rates[which[1]][1],
            most_per_h=most_per_h,
            outage_h=math.exp(outages.of(which)),
            sigma_outage=outages.sigma_of(which),
            most_away_h=most_away_h,
            drift_rate=_drift(series, log_rate, dispersions[0]),
            drift_outage=_drift(series, log_outage, dispersions[1]),
            dispersion_up=dispersions[0],
            dispersion_down=dispersions[1],
            basis=_basis(which),
            num_traces=len(traces),
            as_of=as_of,
            source=SOURCE,
        )
        start[which] = StartOdds(
            **of_class,
            market=Market.SPOT,
            p_at_once=shares.of(which),
            at_once_s=AT_ONCE_S,
            **later,
            basis=_basis(which),
            num_traces=len(traces),
            as_of=as_of,
            source=SOURCE,
        )
    return Fit(spot=spot, start=start)


def _basis(which: MachineClass) -> Basis:
    return Basis.JUDGED if which[1] is Age.NEW else Basis.FITTED


class _Levels:
    """The mean of a quantity by class.

    Places differ more than sizes, so several GPUs are compared with one within a place, and the difference
    counts as far as it exceeds its standard error (the positive part of James and Stein). A GPU newer than
    any that was watched is judged to be like the scarcer half of what was.
    """

    def __init__(self, traces: Sequence[Trace], values: Sequence[float | None]) -> None:
        known = [(trace, value) for trace, value in zip(traces, values, strict=True) if value is not None]
        levels = [value for _, value in known]
        self._mean = statistics.fmean(levels)
        self._sigma = statistics.stdev(levels) * _of_one_more([trace for trace, _ in known])
        self._step = _beyond_chance(list(_steps(known)))
        self._share_several = statistics.fmean(trace.num_gpus > 1 for trace, _ in known)
        scarce = set(map(id, _scarce(traces)))
        self._scarcer = statistics.fmean(value for trace, value in known if id(trace) in scarce) - self._mean

    def of(self, which: MachineClass) -> float:
        """The mean of a class."""
        size, age = which
        step = self._step * ((size is Size.SEVERAL) - self._share_several)
        return self._mean + step + self._scarcer * (age is Age.NEW)

    def sigma_of(self, which: MachineClass) -> float:
        """Standard deviation of one more place of a class."""
        return self._sigma * (_UPPER_HALF if which[1] is Age.NEW else 1)


def _rates_of(traces: Sequence[Trace], dispersion: float) -> dict[Age, tuple[float, float]]:
    """Mean and standard deviation of the logarithm of the rate, the same for one GPU and for several.

    In one zone AWS took several GPUs twice as often as one, and GCP a tenth as often: no difference that the
    next provider would have.
    """
    mean, sigma = likely_rates(traces, dispersion=dispersion)
    of_new, _ = likely_rates(_scarce(traces), dispersion=dispersion)
    wider = sigma * _of_one_more(traces)
    return {Age.KNOWN: (mean, wider), Age.NEW: (of_new, wider * _UPPER_HALF)}


def _scarce(traces: Sequence[Trace]) -> list[Trace]:
    """The half of them that were away the most."""
    median = statistics.median(trace.sums.share_down for trace in traces)
    return [trace for trace in traces if trace.sums.share_down > median]


def _of_one_more(traces: Sequence[Trace]) -> float:
    """How much wider one more collection must be taken than those that tell the mean and the spread.

    Traces of one collection resemble each other, so collections count and not traces.
    """
    return of_one_more(len({trace.collection for trace in traces}))


def likely_rates(traces: Sequence[Trace], *, dispersion: float) -> tuple[float, float]:
    """Mean and standard deviation over places of the logarithm of the rate, by maximum likelihood.

    A trace without a preemption says that its rate is low, not how low: the shorter it is, the less it says.
    Given the rate the number is negative binomial, with a variance of ``dispersion`` times its mean.
    """
    likelihoods = np.array([_likelihoods(trace, dispersion) for trace in traces])

    def total(mean: float, sigma: float) -> float:
        density = np.exp(-(((_LOG_RATES - mean) / sigma) ** 2) / 2)
        return float(np.log(likelihoods @ (density / density.sum())).sum())

    return max(product(_MEANS, _SIGMAS), key=lambda pair: total(*pair))


def _likelihoods(trace: Trace, dispersion: float) -> Array:
    """Of the number of preemptions at each rate, over the highest."""
    count = trace.sums.num_losses
    shapes = np.exp(_LOG_RATES) * trace.sums.up_h / (dispersion - 1)
    logs = np.log(shapes[:, None] + np.arange(count)).sum(axis=1) - shapes * math.log(dispersion)
    return np.asarray(np.exp(logs - logs.max()))


def _steps(known: Sequence[tuple[Trace, float]]) -> Iterator[float]:
    """How much several GPUs at once lie above one, for each trace of several where one was watched, too."""
    for trace, value in known:
        one = [v for t, v in known if t.place == trace.place and t.num_gpus == 1]
        if trace.num_gpus > 1 and one:
            yield value - statistics.fmean(one)


def _beyond_chance(steps: Sequence[float]) -> float:
    if len(steps) < 2:
        return 0.0
    mean, variance = statistics.fmean(steps), statistics.variance(steps) / len(steps)
    return mean * max(0.0, 1 - variance / mean**2) if mean else 0.0


def _dispersion(traces: Sequence[Trace], *, is_up: bool) -> float:
    """Mean squared coefficient of variation of the stretches of a kind, over traces with enough of them."""
    runs = [[s.hours for s in trace.stretches if s.is_up == is_up] for trace in traces]
    return statistics.fmean(
        statistics.pvariance(hours) / statistics.fmean(hours) ** 2
        for hours in runs
        if len(hours) >= _LEAST_RUNS
    )


def _drift(traces: Sequence[Trace], level: Callable[[Trace], float | None], dispersion: float) -> float:
    """Standard deviation of a level within one trace, from its first half against its second.

    What few preemptions leave to chance is taken off.
    """
    squares = []
    for trace in traces:
        halves = [trace.half(0), trace.half(1)]
        counts = [half.sums.num_losses for half in halves]
        if min(counts) >= _LEAST_RUNS:
            before, after = (level(half) or 0.0 for half in halves)
            squares.append((after - before) ** 2 - dispersion * sum(1 / count for count in counts))
    return math.sqrt(max(statistics.fmean(squares), 0.01) / 2)


def first_waits_h(stretches: Sequence[Stretch], count: int = 200) -> Iterator[float]:
    """Hours that starts at evenly spaced moments wait, at most to the end of the trace."""
    start_h, end_h = stretches[0].start_h, stretches[-1].end_h
    at = 0
    for i in range(count):
        now_h = start_h + (i + 0.5) / count * (end_h - start_h)
        while stretches[at].end_h <= now_h:
            at += 1
        yield 0.0 if stretches[at].is_up else stretches[at].end_h - now_h


def _later_waits(traces: Sequence[Trace]) -> dict[str, float]:
    """Quantiles of the waits that were waits."""
    waits_h = [wait_h for trace in traces for wait_h in first_waits_h(trace.stretches) if wait_h]
    tenths = statistics.quantiles(waits_h, n=10)
    return {"later_p50_s": tenths[4] * HOUR_S, "later_p90_s": tenths[8] * HOUR_S}


def on_demand(odds: StartOdds) -> StartOdds:
    """A judgement: as long as spot, and half as often."""
    p_at_once = 1 - ON_DEMAND_SHARE * (1 - odds.p_at_once)
    return replace(odds, market=Market.ON_DEMAND, p_at_once=p_at_once, basis=Basis.JUDGED)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Fit the odds of spot machines and of starts.")
    parser.add_argument("--shared", type=Path, required=True, help="folder that holds traces/ and prices/")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "catalogs")
    options = parser.parse_args(arguments)
    fitted = fit(read_traces(options.shared))
    start = [*fitted.start.values(), *map(on_demand, fitted.start.values())]
    write_atomically(options.out / SPOT_ODDS_FILE, _csv(SpotOdds, fitted.spot.values()))
    write_atomically(options.out / START_ODDS_FILE, _csv(StartOdds, start))


def _csv(kind: type[SpotOdds | StartOdds], rows: Iterable[SpotOdds | StartOdds]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns_of(kind))
    for row in rows:
        writer.writerow([f"{v:.3g}" if isinstance(v, float) else str(v) for v in asdict(row).values()])
    return text.getvalue().encode()


if __name__ == "__main__":
    main()
