"""What an hour of a rented machine comes to cost while the job runs, drawn from its price.

Half of the draws pay the median, and a tenth more than the p90, as a log-normal does. That a price may also
fall is not counted on: an older quote, which may fall further, would be the better one. A guess, which nobody
has quoted, is drawn for the bill and its odds, but counts at its p90 where plans are compared.
"""

from __future__ import annotations

import math

import numpy as np

from advisor.core.values import Plan
from recommender.outcome.draws import Z90, Z_HIGHEST, Array, Draws


def price_rise(plan: Plan) -> float:
    """The p90 of the price over its median; 1 where it is exact."""
    if plan.price is None:
        return 1.0
    return plan.price.usd_per_h.p90 / plan.price.usd_per_h.p50


def rent_factors(plan: Plan, draws: Draws) -> Array:
    """Draws [n] of the rent over its median; what one GPU costs in one region is one draw."""
    region = "" if plan.offer is None else plan.offer.region
    return rent_over_median(plan, draws.price_of(f"{plan.provider}/{plan.gpu}/{region}"))


def rent_over_median(plan: Plan, z: Array) -> Array:
    """For standard normal draws ``z`` [n]: at least 1, and the rise at their p90."""
    return np.asarray(np.exp(np.maximum(z, 0.0) / Z90 * math.log(price_rise(plan))), dtype=np.float64)


def counted_over_median(plan: Plan) -> float | None:
    """What a guess counts over its median where plans are compared; None for what counts as it is drawn."""
    if plan.price is None or not plan.price.is_guess:
        return None
    return plan.price.counted_usd_per_h / plan.price.usd_per_h.p50


def rents_to_compare(plan: Plan) -> tuple[float, float]:
    """USD per hour as it counts, and in the dearest of the draws.

    In between, the logarithm of the price is linear in the draw: what is no dearer at both ends never is.
    """
    rent = plan.usd_per_h or 0.0
    counted = counted_over_median(plan)
    return rent * (counted or 1.0), rent * price_rise(plan) ** (Z_HIGHEST / Z90)
