"""Regret where records tell what came: later prices, and traces of spot machines.

**Later prices**: the question is asked on GCP's machines at what they were quoted 30, 90 and 180 days before,
with a price model that was fitted to nothing newer than the quotes. What is picked is paid at the true
prices, beside what would have been best at these. **Traces**: each option on spot, the pick among them, runs
as the machines of recorded traces came and went, from evenly spaced moments; those who watched a collection
of traces knew no more of one than of the others, so options compete by their means over a collection. No
trace tells of machines on demand: they wait half as long as spot, as the product judges. As in the rule,
bills, hours until the job is done and work on the script count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np

from advisor.config.settings import CloudSettings
from advisor.core.findings.about_options import RestartsFromZero
from advisor.core.units import HOUR_S
from advisor.core.values import Market, Offer, Option, Plan, Recommendation, Trace
from advisor.pricing.expected_prices import PriceModel, likely_prices
from advisor.pricing.instance_types import load_instances
from advisor.service.recommend.pipeline import Places, recommendation_of
from advisor.service.recommend.plan_sources import cloud_terms
from advisor.service.recommend.policy_in_force import places_by_verdict
from recommender.outcome.bill import is_guessed, most_rise, price_rise, rent_over_median
from recommender.outcome.spot import SpotTerms, is_spot
from recommender.outcome.spot_history import Stretch
from recommender.plans.candidates import plans_of_offers
from recommender.ranking.value import Worth, change_total_usd, total_usd, worth_for
from research.chosen.fit import model_of
from research.chosen.judge import moment, on_demand_at, spot_at
from research.chosen.panels import Panel, gcp_weekly
from research.spot_replay import Run, replay, ring_of
from research.spot_traces import read_traces

AGES_DAYS = (30, 90, 180)
# Paid on the last date of the record, and half a year and a year before it.
PAID_DAYS_BEFORE_END = (0, 182, 364)
NUM_STARTS = 10
# As research/spot_fit.py judges of machines on demand: none half as often, and then for as long.
WAITS_OF_SPOT = 0.5
_SHORTEST = 0.01, None
_EVEN_DRAWS = np.array([NormalDist().inv_cdf((i + 0.5) / 1000) for i in range(1000)])

Ring = tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What is known of the past."""

    panel: Panel
    """GCP's weekly prices."""
    moments: tuple[tuple[int, int, PriceModel], ...]
    """Columns of the quotes and of what was paid, and a price model of the eve of the quotes."""
    rings: Mapping[str, tuple[Ring, ...]]
    """Traces of spot machines by collection, each repeated for ever."""


def read_records(shared: Path) -> Records:
    """All of them; a minute, since a price model is fitted for each date of quotes."""
    panel = gcp_weekly(shared)
    model_at = cache(lambda then: model_of(panel.before(int(panel.days[then]) + 1)))
    paid_at = [
        int(np.abs(panel.days - (panel.days[-1] - before)).argmin()) for before in PAID_DAYS_BEFORE_END
    ]
    pairs = [pair for age in AGES_DAYS for pair in panel.pairs(age) if pair[1] in paid_at]
    rings: dict[str, tuple[Ring, ...]] = {}
    for trace in read_traces(shared):
        if len(ring := tuple(ring_of(trace.stretches)) if trace.stretches else ()) > 1:
            rings[trace.collection] = (*rings.get(trace.collection, ()), ring)
    return Records(
        panel=panel, moments=tuple((then, now, model_at(then)) for then, now in pairs), rings=rings
    )


def at_later_prices(trace: Trace, places: Places, records: Records) -> Iterator[float | None]:
    """The regret at each moment of the record; None where the pick then misses a limit of the job."""
    for then, now, model in records.moments:
        quoted = _plans(places, records.panel, then, now, model)
        picked = recommendation_of(trace, _on(places, _kept(places, quoted))).chosen
        if picked is not None:
            true = _plans(places, records.panel, now, now, model)
            yield _regret(trace, places, _kept(places, true), true, picked.plan.id)


def _regret(
    trace: Trace, places: Places, kept: Sequence[Plan], true: Sequence[Plan], picked: str
) -> float | None:
    worth = worth_for(places.job)
    plans = {plan.id: plan for plan in (*kept, *(plan for plan in true if plan.id == picked))}
    there = recommendation_of(trace, _on(places, list(plans.values())))
    paid = next(option for option in there.options if option.plan.id == picked)
    if there.chosen is None or not paid.feasible:
        return None
    return total_usd(paid, worth) / total_usd(there.chosen, worth) - 1


def _on(places: Places, rented: Sequence[Plan]) -> Places:
    """The places with other machines to rent; one's own stay."""
    own = (plan for plan in places.plans if plan.offer is None)
    return replace(places, plans=(*own, *rented))


def _kept(places: Places, plans: Sequence[Plan]) -> list[Plan]:
    return places_by_verdict(plans, places.policy, places.conditions.spot, everywhere=False)


def _plans(places: Places, panel: Panel, then: int, now: int, model: PriceModel) -> list[Plan]:
    """Machines at what they are expected to cost at one date by the quotes of another."""
    offers = list(_offers(panel, then, {plan.gpu for plan in places.plans if plan.offer is not None}))
    prices = likely_prices(
        offers,
        now=moment(int(panel.days[now])),
        on_demand=on_demand_at(panel, then),
        spot=spot_at(panel, then),
        model=model,
    )
    terms = cloud_terms(CloudSettings(), places.job.data, {})
    return plans_of_offers(offers, terms=terms, prices=prices)


def _offers(panel: Panel, column: int, gpus: set[str]) -> Iterator[Offer]:
    known = load_instances()
    for market, prices in ((Market.ON_DEMAND, panel.on_demand), (Market.SPOT, panel.spot)):
        for (name, region), usd in zip(panel.machines, prices[:, column].tolist(), strict=True):
            machine = known[panel.provider, name]
            if machine.gpu in gpus and not math.isnan(usd):
                yield machine.offer(
                    region=region, market=market, usd_per_h=usd, source="a record",
                    retrieved_at=moment(int(panel.days[column])),
                )  # fmt: skip


def on_traces(answer: Recommendation, places: Places, rings: Sequence[Ring]) -> float:
    """The regret in the mean over traces, among the options that are feasible as expected."""
    worth, spot = worth_for(places.job), places.conditions.spot
    runs_of = cache(lambda work_h, interval_h: _mean_run(rings, work_h, interval_h))
    wait_h = WAITS_OF_SPOT * runs_of(*_SHORTEST).wait_h
    totals = {
        option.plan.id: (
            _replayed_usd(option, worth, runs_of(*_run_of(option, spot)))
            if is_spot(option.plan)
            else _waited_usd(option, worth, wait_h)
        )
        for option in answer.options
        if option.feasible
    }
    assert answer.chosen is not None
    return totals[answer.chosen.plan.id] / min(totals.values()) - 1


def _run_of(option: Option, spot: SpotTerms) -> tuple[float, float | None]:
    """Hours of training, and between checkpoints; None where a preemption starts again from zero."""
    starts_again = any(isinstance(reason, RestartsFromZero) for reason in option.reasons)
    work_h = option.iterations * option.estimate.iteration_s.p50 / HOUR_S
    return float(f"{work_h:.3g}"), None if starts_again else spot.checkpoint_interval_h


def _mean_run(rings: Sequence[Ring], work_h: float, interval_h: float | None) -> Run:
    """Infinite where some machine is never up for long enough to save, or to start again from zero."""
    terms = SpotTerms(checkpoint_interval_h=interval_h)
    least_h = min(work_h, interval_h or work_h) + terms.checkpoint_h + terms.restart_h
    if least_h > min(max(s.hours for s in ring if s.is_up) for ring in rings):
        return Run(wait_h=math.inf, time_h=math.inf, billed_h=math.inf)
    runs = [replay(ring, (i + 0.5) / NUM_STARTS, work_h, terms) for ring in rings for i in range(NUM_STARTS)]
    return Run(
        wait_h=fmean(run.wait_h for run in runs),
        time_h=fmean(run.time_h for run in runs),
        billed_h=fmean(run.billed_h for run in runs),
    )


def _replayed_usd(option: Option, worth: Worth, run: Run) -> float:
    plan = option.plan
    if math.isinf(run.time_h):
        return math.inf
    rise = price_rise(plan, option.expected.run_days)
    drawn = rent_over_median(_EVEN_DRAWS, rise, most_rise(plan))
    over_median = rise if is_guessed(plan) else float(drawn.mean())
    startup_h = plan.startup_s / HOUR_S
    rent_usd = (plan.usd_per_h or 0.0) * over_median * (startup_h + run.billed_h)
    stored_usd = plan.storage_usd_per_h * (startup_h + run.time_h) + plan.egress_usd + plan.transfer_usd
    waited_usd = worth.hour_usd * (startup_h + run.time_h) if worth.hour_usd else 0.0
    return rent_usd + stored_usd + waited_usd + change_total_usd(option, worth)


def _waited_usd(option: Option, worth: Worth, wait_h: float) -> float:
    """As expected; if it is rented, after another wait."""
    longer_h = 0.0 if option.plan.offer is None else wait_h - option.expected.wait_s / HOUR_S
    return total_usd(option, worth) + worth.hour_usd * longer_h


def regrets_of(
    trace: Trace, places: Places, answer: Recommendation, records: Records
) -> Mapping[str, Sequence[float | None]]:
    """Of an answer that recommends something: both, by what is other than expected."""
    return {
        "later prices": list(at_later_prices(trace, places, records)),
        "spot traces": [on_traces(answer, places, rings) for rings in records.rings.values()],
    }
