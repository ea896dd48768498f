"""What an hour of a rented machine comes to cost while the job runs, drawn from its price.

Half of the draws pay the median, and a tenth more than the p90, as a log-normal does. That a price may also
fall is not counted on: an older quote, which may fall further, would be the better one. A guess, which nobody
has quoted, is drawn for the bill and its odds, but counts at its p90 where plans are compared. A price moves
on while a job runs: what is drawn is its mean over the run, of which less is known the longer that is.
"""

from __future__ import annotations

import math

import numpy as np

from advisor.core.values import Plan, Price
from recommender.outcome.draws import Z90, Z_HIGHEST, Array, Draws


def price_rise(plan: Plan, run_days: float) -> float:
    """The p90 of the mean price over a run, over the median; 1 where it is exact."""
    if plan.price is None:
        return 1.0
    return plan.price.p90_over(run_days) / plan.price.usd_per_h.p50


def rent_factors(plan: Plan, draws: Draws, rise: float) -> Array:
    """Draws [n] of the rent over its median; what one GPU costs in one region is one draw."""
    region = "" if plan.offer is None else plan.offer.region
    return rent_over_median(draws.price_of(f"{plan.provider}/{plan.gpu}/{region}"), rise)


def rent_over_median(z: Array, rise: float) -> Array:
    """For standard normal draws ``z`` [n]: at least 1, and the rise at their p90."""
    return np.asarray(np.exp(np.maximum(z, 0.0) / Z90 * math.log(rise)), dtype=np.float64)


def is_guessed(plan: Plan) -> bool:
    """Whether its rent counts at its p90 where plans are compared; what is no guess counts as it is drawn."""
    return plan.price is not None and plan.price.is_guess


def rents_to_compare(plan: Plan) -> tuple[float, ...]:
    """USD per hour as it counts, and in the dearest draw, at the start and over each of `Price.RUN_DAYS`.

    In between, the logarithm of the price is linear in the draw, and in the days: what is no dearer at all of
    these never is.
    """
    rent = plan.usd_per_h or 0.0
    rises = [price_rise(plan, run_days) for run_days in (0.0, *Price.RUN_DAYS)]
    counted = [rent * rise for rise in rises] if is_guessed(plan) else [rent] * len(rises)
    return *counted, *(rent * rise ** (Z_HIGHEST / Z90) for rise in rises)
