"""Spot plans that preemptions make hopeless, refused with the figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import Plan
from recommender.outcome.bill import cost_usd
from recommender.outcome.spot import (
    SpotTerms,
    best_checkpoint_interval_h,
    is_spot,
    makespan_and_billed_h,
)

# A plan whose expected makespan is more than this many times the undisturbed one is no plan.
HOPELESS_TIMES = 5.0


def refusal(
    plan: Plan,
    work_s: float,
    terms: SpotTerms,
    *,
    median_time_s: float,
    deadline_s: float | None,
    p_within_deadline: float | None,
) -> Finding | None:
    """Why preemptions make the plan hopeless; None where they do not.

    It is if the expected makespan exceeds five times the time on demand, or half of the draws never end;
    without checkpoints, also if no draw meets a deadline that the same machine would meet on demand.
    """
    if not is_spot(plan):
        return None
    makespan_h, _ = _expected_h(work_s / HOUR_S, *_figures(terms))
    work_h = work_s / HOUR_S
    saves = terms.checkpoint_interval_h is not None
    in_time = deadline_s is not None and plan.startup_s + work_s <= deadline_s
    too_late = not saves and in_time and p_within_deadline == 0
    ends = makespan_h <= HOPELESS_TIMES * work_h and math.isfinite(median_time_s)
    if ends and not too_late:
        return None
    return finding(
        Code.SPOT,
        training_h=makespan_h,
        cost_usd=_expected_usd(plan, work_s, terms),
        checkpoint_interval_h=terms.checkpoint_interval_h,
        on_demand_h=work_h,
        best=_better(plan, work_s, terms, makespan_h),
    )


def _better(plan: Plan, work_s: float, terms: SpotTerms, makespan_h: float) -> Mapping[str, float] | None:
    """What the best checkpoint interval would make of it, if it helps."""
    interval_h = best_checkpoint_interval_h(terms)
    if not 0 < interval_h < work_s / HOUR_S:
        return None
    best = replace(terms, checkpoint_interval_h=interval_h)
    best_h, _ = _expected_h(work_s / HOUR_S, *_figures(best))
    if best_h >= makespan_h:
        return None
    usd = _expected_usd(plan, work_s, best)
    return {"checkpoint_interval_h": interval_h, "training_h": best_h, "cost_usd": usd}


def _expected_usd(plan: Plan, work_s: float, terms: SpotTerms) -> float:
    """Dollars at the median rate."""
    hours = _expected_h(work_s / HOUR_S, *_figures(terms))
    kept_s, run_s = (np.array([plan.startup_s + each * HOUR_S]) for each in hours)
    return float(cost_usd(plan, run_s=run_s, kept_s=kept_s)[0])


def _figures(terms: SpotTerms) -> tuple[float, float, float | None, float, float]:
    """All that the expectation depends on."""
    cadence = (terms.checkpoint_interval_h, terms.checkpoint_h, terms.restart_h)
    return terms.preemptions_per_h, terms.reacquire_h, *cadence


@lru_cache(maxsize=1024)
def _expected_h(
    work_h: float,
    preemptions_per_h: float,
    reacquire_h: float,
    interval_h: float | None,
    checkpoint_h: float,
    restart_h: float,
) -> tuple[float, float]:
    """Hours of training and hours billed at the median rate; thousands of plans share a few."""
    cadence = SpotTerms(checkpoint_interval_h=interval_h, checkpoint_h=checkpoint_h, restart_h=restart_h)
    makespan_h, billed_h = makespan_and_billed_h(
        np.array([work_h]), cadence, rate_per_h=preemptions_per_h, reacquire_h=reacquire_h
    )
    return float(makespan_h[0]), float(billed_h[0])
