"""What an hour of a spot machine may come to cost while the job runs, by the quantiles of its past prices.

A job begins at today's price. Where 9 of 10 past hours stayed under a dearer one, it may rise: half of the
draws stay at today's, and a tenth go above that quantile, as a log-normal does. That it may fall as well is
not counted on, so that neither the median nor the p90 of the cost is below that of today's price.
"""

from __future__ import annotations

import math

import numpy as np

from advisor.core.values import Plan
from recommender.outcome.draws import Z90, Z_HIGHEST, Array
from recommender.outcome.spot import is_spot


def price_rise(plan: Plan) -> float:
    """The p90 of past prices over today's; 1 where it is no higher or not known, or nothing is spot."""
    offer = plan.offer
    if offer is None or not is_spot(plan) or offer.spot_usd_per_h is None:
        return 1.0
    return max(1.0, offer.spot_usd_per_h.p90 / offer.list_usd_per_h)


def price_factors(plan: Plan, z: Array) -> Array:
    """Over today's price, for standard normal draws ``z`` [n]: at least 1, and the rise at their p90."""
    return np.asarray(np.exp(np.maximum(z, 0.0) / Z90 * math.log(price_rise(plan))), dtype=np.float64)


def dearest_factor(plan: Plan) -> float:
    """Over today's price, in the dearest of the draws; 1 where nothing is spot.

    In between, the logarithm of the price is linear in the draw: what is no dearer at both ends never is.
    """
    return float(price_rise(plan) ** (Z_HIGHEST / Z90))
