"""Draws of what plans lead to, many plans at once: seconds trained, seconds until done, dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.core.units import HOUR_S
from advisor.core.values import IterationEstimate, Plan
from recommender.outcome.bill import cost_usd
from recommender.outcome.draws import Array, Draws, log_normal, waits
from recommender.outcome.rent import counted_over_median, price_rise, rent_factors
from recommender.outcome.spot import SIGMA_RATE, SIGMA_REACQUIRE, SpotTerms, drawn_hours, is_spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Draws [plans, n], a row for each plan.

    Attributes:
        steady_usd: the cost at the median of the price.
        counted_usd: the cost where plans are compared: that of a guessed price at its p90.
    """

    train_s: Array
    time_s: Array
    cost_usd: Array
    steady_usd: Array
    counted_usd: Array


def work_of(estimate: IterationEstimate, iterations: int, draws: Draws) -> Array:
    """Draws [n] of the seconds of training without a preemption."""
    return iterations * log_normal(estimate.iteration_s, draws.prediction_of(estimate.gpu))


def outcome_of(
    plans: Sequence[Plan], works_s: Sequence[Array], terms: Sequence[SpotTerms], draws: Draws
) -> Outcome:
    """What each plan leads to.

    Args:
        plans: what is rented or used.
        works_s: ``work_of`` each.
        terms: of each; they differ in the rate alone.
        draws: as those of ``works_s``.
    """
    train_s = np.array(works_s)
    running_s = train_s.copy()
    spot = [i for i, plan in enumerate(plans) if is_spot(plan)]
    if spot:
        rates = [[terms[i].preemptions_per_h] for i in spot]
        makespan_h, billed_h = drawn_hours(
            train_s[spot] / HOUR_S,
            terms[spot[0]],
            rate_per_h=np.array(rates) * np.exp(SIGMA_RATE * draws.preemption_rate),
            reacquire_h=terms[spot[0]].reacquire_h * np.exp(SIGMA_REACQUIRE * draws.reacquire),
            z=draws.preemption,
        )
        train_s[spot], running_s[spot] = makespan_h * HOUR_S, billed_h * HOUR_S
    startup_s = np.array([[plan.startup_s] for plan in plans])
    wait_s = np.array([_wait_s(plan, draws) for plan in plans])
    kept_s = startup_s + train_s
    steady_usd, usd, counted_usd = _costs_usd(plans, startup_s + running_s, kept_s, draws)
    return Outcome(
        train_s=train_s,
        time_s=wait_s + kept_s,
        cost_usd=usd,
        steady_usd=steady_usd,
        counted_usd=counted_usd,
    )


def _costs_usd(
    plans: Sequence[Plan], run_s: Array, kept_s: Array, draws: Draws
) -> tuple[Array, Array, Array]:
    """At the median of the price, at the drawn one, and as it counts in comparisons."""
    steady = [cost_usd(p, run_s=run, kept_s=kept) for p, run, kept in zip(plans, run_s, kept_s, strict=True)]
    risen = [*steady]
    for i, plan in enumerate(plans):
        if price_rise(plan) > 1:
            factors = rent_factors(plan, draws)
            risen[i] = cost_usd(plan, run_s=run_s[i], kept_s=kept_s[i], over_median=factors)
    counted = [*risen]
    for i, plan in enumerate(plans):
        if (factor := counted_over_median(plan)) is not None:
            counted[i] = cost_usd(plan, run_s=run_s[i], kept_s=kept_s[i], over_median=factor)
    return np.array(steady), np.array(risen), np.array(counted)


def _wait_s(plan: Plan, draws: Draws) -> Array:
    return waits(plan.wait_s, draws.wait) if plan.wait_s else np.zeros_like(draws.wait)
