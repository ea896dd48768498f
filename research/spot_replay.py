"""Jobs replayed on open availability traces against what was predicted of them.

``python -m research.spot_replay --shared DIR --out research/docs/methods/spot_replay.json``. Jobs of several
lengths start at evenly spaced moments of the second half of each trace, which begins anew where it ends.
They are predicted by the defaults, fitted to the other collections alone, and by those corrected by the
first half. Beside them stand what was assumed once, and two floors: one figure for all places, and the rate
of the second half itself. Bills are at 1 USD an hour.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from advisor.core.files import write_atomically
from advisor.core.units import HOUR_S
from advisor.core.values import Layout, Market, Offer, Plan, StartWait, Tier
from advisor.pricing.spot_odds import Age, Size, SpotOdds
from recommender.outcome.draws import Array, make_draws
from recommender.outcome.outcomes import costs_of, runs_of
from recommender.outcome.spot import SpotTerms
from recommender.outcome.spot_history import Stretch, start_with_history, with_history
from research.spot_fit import Fit, fit
from research.spot_traces import Trace, read_traces

LENGTHS_H = (1.0, 4.0, 12.0, 24.0, 48.0)
NUM_STARTS = 40
_NUM_BOOTSTRAPS = 1000
_WITH_ERRORS = ("bill_error_median", "bill_covered", "time_covered")
DRAWS = make_draws(np.random.default_rng(0))
# The assumption before: 0.1 an hour, half an hour away, no wait.
BEFORE = SpotTerms(preemptions_per_h=0.1, reacquire_h=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One job: hours until the machine was there, until the job was done, and billed."""

    wait_h: float
    time_h: float
    billed_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Runs of one length on one trace, against one prediction."""

    collection: str
    place: str
    num_gpus: int
    basis: str
    work_h: float
    bill_usd: float
    """The replayed median bill."""
    bill_error: float
    """Predicted over replayed median bill, less 1."""
    bill_covered: float
    """Share of the runs whose bill is at most the predicted p90."""
    time_covered: float
    """The same of the time until done."""


def replay(ring: Sequence[Stretch], start: float, work_h: float, terms: SpotTerms) -> Run:
    """A job that starts within a ring of stretches, which repeats for ever.

    Args:
        ring: the first is up, the last down; one alone never ends.
        start: which part of the ring has passed, from 0 to below 1.
        work_h: hours without a preemption or checkpoint.
        terms: intervals and costs of checkpoints and restarts.
    """
    interval = min(work_h, terms.checkpoint_interval_h or work_h)
    step_h = interval + (terms.checkpoint_h if work_h > interval else 0.0)
    left = int(np.ceil(work_h / interval - 1e-9))
    time_h = billed_h = restart_h = 0.0
    wait_h: float | None = None
    for hours, is_up in _from(ring, start):
        if is_up:
            wait_h = time_h if wait_h is None else wait_h
            needed_h = restart_h + left * step_h
            if hours >= needed_h:
                return Run(wait_h=wait_h, time_h=time_h + needed_h, billed_h=billed_h + needed_h)
            left -= int(max(hours - restart_h, 0.0) / step_h)
            billed_h, restart_h = billed_h + hours, terms.restart_h
        time_h += hours
    raise AssertionError("a ring has no end")


def _from(ring: Sequence[Stretch], start: float) -> Iterator[tuple[float, bool]]:
    if len(ring) == 1:
        yield float("inf"), True
    at_h = start * ring[-1].end_h
    first = next(i for i, stretch in enumerate(ring) if stretch.end_h > at_h)
    yield ring[first].end_h - at_h, ring[first].is_up
    while True:
        for i in range(len(ring)):
            stretch = ring[(first + 1 + i) % len(ring)]
            yield stretch.hours, stretch.is_up


def ring_of(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches as a ring: the first is up, the last down, neighbours differ; empty if none is up."""
    states = [(s.hours, s.is_up) for s in stretches]
    if len(states) > 1 and states[0][1] == states[-1][1]:
        states = [*states[1:-1], (states[-1][0] + states[0][0], states[0][1])]
    if not states[0][1]:
        states = [*states[1:], states[0]]
    ring: list[Stretch] = []
    for hours, is_up in states:
        ring.append(Stretch(start_h=ring[-1].end_h if ring else 0.0, hours=hours, is_up=is_up))
    return ring if ring[0].is_up else []


def terms_of(odds: SpotOdds) -> SpotTerms:
    """As ``recommend`` takes them from the catalog."""
    return SpotTerms(
        preemptions_per_h=odds.preemptions_per_h,
        sigma_rate=odds.sigma_rate,
        most_per_h=odds.most_per_h,
        reacquire_h=odds.outage_h,
        sigma_reacquire=odds.sigma_outage,
        most_away_h=odds.most_away_h,
        dispersion_up=odds.dispersion_up,
        dispersion_down=odds.dispersion_down,
    )


def predicted(work_h: float, terms: SpotTerms, wait_s: StartWait | None) -> tuple[Array, Array]:
    """Draws of hours until done and of dollars at 1 USD an hour, by the recommender."""
    offer = Offer(
        provider="aws", instance_type="any", region="any", zone=None, gpu="any", num_gpus=1,
        market=Market.SPOT, list_usd_per_h=1.0, source="replay",
        retrieved_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    plan = Plan(
        id="replay", tier=Tier.CLOUD, provider="aws", gpu="any", layout=Layout(gpus_per_node=1), offer=offer,
        usd_per_h=1.0, wait_s=wait_s, startup_s=0.0, minimum_billed_s=0.0,
    )  # fmt: skip
    runs = runs_of([plan], [np.full_like(DRAWS.wait, work_h * HOUR_S)], [terms], DRAWS)
    return runs[0].time_s / HOUR_S, costs_of([plan], runs, DRAWS).usd[0]


def cases(
    traces: Sequence[Trace], *, lengths_h: Sequence[float] = LENGTHS_H, num_starts: int = NUM_STARTS
) -> Iterator[Case]:
    """Every trace that has stretches, each length, each basis."""
    fitted = {
        name: fit([trace for trace in traces if trace.collection != name])
        for name in {trace.collection for trace in traces if trace.stretches}
    }
    for trace in traces:
        ring = ring_of(trace.half(1).stretches) if trace.stretches else []
        if not ring:
            continue
        bases = _bases(trace, fitted[trace.collection])
        for work_h in lengths_h:
            runs = [replay(ring, (i + 0.5) / num_starts, work_h, SpotTerms()) for i in range(num_starts)]
            for basis, (terms, wait_s) in bases.items():
                yield _case(trace, basis, work_h, runs, predicted(work_h, terms, wait_s))


def _bases(trace: Trace, fitted: Fit) -> dict[str, tuple[SpotTerms, StartWait | None]]:
    """Terms and wait by what they rest on; ``fitted`` is to all that the defaults may know."""
    which = Size.ONE if trace.num_gpus == 1 else Size.SEVERAL, Age.KNOWN
    odds, wait_s = fitted.spot[which], fitted.start[which].wait_s
    seen, then = trace.half(0).sums, trace.half(1).sums
    # What a forecast that knew how often the machine was to go away would still miss.
    foreseen = replace(terms_of(odds), preemptions_per_h=then.num_losses / then.up_h, sigma_rate=0.0)
    return {
        "before": (BEFORE, None),
        "defaults": (terms_of(odds), wait_s),
        "first half": (terms_of(with_history(odds, seen)), start_with_history(wait_s, odds, seen)),
        "second half": (foreseen, wait_s),
    }


def _case(trace: Trace, basis: str, work_h: float, runs: Sequence[Run], draws: tuple[Array, Array]) -> Case:
    time_h, usd = (np.sort(values) for values in draws)
    p50, p90 = len(usd) // 2, int(0.9 * (len(usd) + 1)) - 1
    bills = [run.billed_h for run in runs]
    return Case(
        collection=trace.collection,
        place=trace.place,
        num_gpus=trace.num_gpus,
        basis=basis,
        work_h=work_h,
        bill_usd=statistics.median(bills),
        bill_error=float(usd[p50]) / statistics.median(bills) - 1,
        bill_covered=statistics.fmean(bill <= usd[p90] for bill in bills),
        time_covered=statistics.fmean(run.time_h <= time_h[p90] for run in runs),
    )


def summary(cases: Sequence[Case]) -> dict[str, float]:
    """Over all cases, each trace and length counting once."""
    return {
        "cases": len(cases),
        "bill_over_replayed_median": statistics.median(1 + case.bill_error for case in cases),
        "bill_error_median": statistics.median(abs(case.bill_error) for case in cases),
        "bill_covered": statistics.fmean(case.bill_covered for case in cases),
        "time_covered": statistics.fmean(case.time_covered for case in cases),
    }


def standard_errors(cases: Sequence[Case]) -> dict[str, float]:
    """Of `summary`, by a bootstrap that draws collections whole: traces of one resemble each other."""
    by_collection: dict[str, list[Case]] = {}
    for case in cases:
        by_collection.setdefault(case.collection, []).append(case)
    blocks, rng = list(by_collection.values()), random.Random(0)  # noqa: S311 - not for secrets
    drawn = [
        summary([case for block in rng.choices(blocks, k=len(blocks)) for case in block])
        for _ in range(_NUM_BOOTSTRAPS)
    ]
    return {f"{name}_se": statistics.stdev(one[name] for one in drawn) for name in _WITH_ERRORS}


def floor(cases: Sequence[Case]) -> float:
    """Median error of bills if each length's were the median of the very bills that judge.

    Who does not know the place says one figure for all of them, and none has less bias.
    """
    bills: dict[float, list[float]] = {}
    for case in cases:
        bills.setdefault(case.work_h, []).append(case.bill_usd)
    middle = {work_h: statistics.median(usd) for work_h, usd in bills.items()}
    return statistics.median(abs(middle[case.work_h] / case.bill_usd - 1) for case in cases)


def document(cases: Sequence[Case]) -> dict[str, object]:
    """All that is published: by basis, and within it by length and by collection."""
    body: dict[str, object] = {}
    for basis in dict.fromkeys(case.basis for case in cases):
        of_basis = [case for case in cases if case.basis == basis]
        body[basis] = {
            "all": summary(of_basis) | standard_errors(of_basis),
            "by_length_h": {
                f"{length:g}": summary([c for c in of_basis if c.work_h == length])
                for length in dict.fromkeys(c.work_h for c in of_basis)
            },
            "by_collection": {
                name: summary([c for c in of_basis if c.collection == name])
                for name in dict.fromkeys(c.collection for c in of_basis)
            },
        }
        body["one figure for all places"] = {"bill_error_median": floor(of_basis)}
    return body


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Replay jobs on availability traces of spot machines.")
    parser.add_argument("--shared", type=Path, required=True, help="folder that holds traces/ and prices/")
    parser.add_argument("--out", type=Path, help="where to keep the results as JSON")
    options = parser.parse_args(arguments)
    body = document(list(cases(read_traces(options.shared))))
    text = json.dumps(rounded(body), indent=1)
    if options.out is not None:
        write_atomically(options.out, f"{text}\n".encode())
    print(text)


def rounded(body: object) -> object:
    """The same with three digits after the point."""
    if isinstance(body, dict):
        return {key: rounded(value) for key, value in body.items()}
    return round(body, 3) if isinstance(body, float) else body


if __name__ == "__main__":
    main()
