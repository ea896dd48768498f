"""The bill of one plan: rent for the time that is billed, disks for the time they are kept, data that moves.

cost = usd_per_h x billed time + storage_usd_per_h x time from start to end + egress + transfer
billed time = max(billing minimum, running time rounded up to the billing step)
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from advisor.core.units import HOUR_S
from advisor.core.values import Plan, Price
from recommender.outcome.draws import Z90, Z_HIGHEST, Array
from recommender.outcome.spot import is_spot

STORAGE, RESULT, MOVING = "storage", "data transfer", "moving the data"
# Money and time are compared to a millionth, so that rounding of floats never decides, nor bills a step.
TOLERANCE = 1e-6
_HIGHEST = Z_HIGHEST / Z90


def billed_time_s(run_s: Array, *, minimum_s: float, step_s: float) -> Array:
    """Seconds billed for seconds run, elementwise; a step of 0 bills the exact time.

    >>> float(billed_time_s(np.array([61.2]), minimum_s=60.0, step_s=1.0)[0])
    62.0
    """
    stepped = np.ceil(run_s / step_s - TOLERANCE) * step_s if step_s else run_s
    return np.maximum(stepped, minimum_s)


def cost_usd(plan: Plan, *, run_s: Array, kept_s: Array, over_median: Array | float = 1.0) -> Array:
    """Dollars, elementwise; arguments as of ``costs_usd``."""
    return next(costs_usd(plan, [over_median], run_s=run_s, kept_s=kept_s))


def costs_usd(
    plan: Plan, over_medians: Iterable[Array | float], *, run_s: Array, kept_s: Array
) -> Iterator[Array]:
    """Dollars, elementwise, for each of several rents; rent that was not configured counts as 0.

    Args:
        over_medians: what an hour of the machine costs, over the median of its price.
        run_s: seconds the machine runs, start-up included.
        kept_s: seconds from its start to the end of the job, in which the disks are kept.
    """
    billed_s = billed_time_s(run_s, minimum_s=plan.minimum_billed_s, step_s=plan.billed_step_s)
    once_usd = plan.egress_usd + plan.transfer_usd
    # What is free stays so for a run that never ends.
    stored_usd = plan.storage_usd_per_h * kept_s / HOUR_S if plan.storage_usd_per_h else 0.0
    usd_per_h = plan.usd_per_h
    for over in over_medians:
        rent_usd = usd_per_h * (billed_s * over) / HOUR_S if usd_per_h else np.zeros_like(run_s)
        yield once_usd + rent_usd + stored_usd


def breakdown_usd(plan: Plan, cost_p50_usd: float, train_s: float, rise_usd: float = 0.0) -> dict[str, float]:
    """Dollars by cause; they add up to the median cost.

    Args:
        cost_p50_usd: the median cost.
        train_s: seconds of training without preemptions: their cost, disks included, is a line of its own.
        rise_usd: what the median cost lacked if rent stayed at its median.
    """
    run_h = (plan.startup_s + train_s) / HOUR_S
    usd_per_s = (plan.usd_per_h or 0.0) / HOUR_S
    parts = {"training": usd_per_s * train_s, "start-up": usd_per_s * plan.startup_s}
    extras = {STORAGE: plan.storage_usd_per_h * run_h, RESULT: plan.egress_usd, MOVING: plan.transfer_usd}
    parts |= {name: usd for name, usd in extras.items() if usd}
    if rise_usd > TOLERANCE * cost_p50_usd:
        parts["price rise"] = rise_usd
    rest = cost_p50_usd - sum(parts.values())
    if not math.isfinite(rest) or abs(rest) > TOLERANCE * cost_p50_usd:
        of_billing = "billing minimum" if run_h * HOUR_S < plan.minimum_billed_s else "billing step"
        parts["preemptions" if is_spot(plan) else of_billing] = rest
    return parts


# --- What an hour of a rented machine comes to cost while the job runs, drawn from its price -------------
#
# Half of the draws pay the median, and a tenth more than the p90, as a log-normal does. That a price may
# also fall is not counted on: an older quote, which may fall further, would be the better one. A guess,
# which was not quoted, is drawn for the bill and its odds, but counts at its p90 where plans are
# compared. A price moves on while a job runs: what is drawn is its mean over the run, of which less is
# known the longer that is.


def price_rise(plan: Plan, run_days: float) -> float:
    """The p90 of the mean price over a run, over the median; 1 where it is exact."""
    if plan.price is None:
        return 1.0
    return plan.price.p90_over(run_days) / plan.price.usd_per_h.p50


def most_rise(plan: Plan) -> float:
    """The most that any draw pays, over the median: spot never costs more than on-demand."""
    return math.inf if plan.price is None else plan.price.most_usd_per_h / plan.price.usd_per_h.p50


def rent_over_median(z: Array, rise: float, most: float = math.inf) -> Array:
    """For standard normal draws ``z`` [n]: at least 1, the rise at their p90, and ``most`` at most."""
    drawn = np.exp(np.maximum(z, 0.0) / Z90 * math.log(rise))
    return np.asarray(np.minimum(drawn, most), dtype=np.float64)


def is_guessed(plan: Plan) -> bool:
    """Whether its rent counts at its p90 where plans are compared; what is no guess counts as it is drawn."""
    return plan.price is not None and plan.price.is_guess


def rents_to_compare(plan: Plan) -> tuple[float, ...]:
    """USD per hour as it counts, and in the dearest draw, at the start and over each of `Price.RUN_DAYS`.

    In between, the logarithm of the price is linear in the draw, and in the days: what is no dearer at all of
    these never is. Digits beyond a billionth of a dollar depend on the processor.
    """
    rent, price = plan.usd_per_h or 0.0, plan.price
    if price is None:
        return (round(rent, 9),) * (2 + 2 * len(Price.RUN_DAYS))
    p50, most, known = price.usd_per_h.p50, most_rise(plan), round(rent, 9)
    rises = [p90 / p50 for p90 in price.p90s]
    counted = [round(rent * rise, 9) for rise in rises] if price.is_guess else [known] * len(rises)
    dearest = [known if rise == 1 <= most else round(rent * min(rise**_HIGHEST, most), 9) for rise in rises]
    return *counted, *dearest
