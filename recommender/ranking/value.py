"""The rule of the choice: the least of expected cost and expected time, at what an hour is worth.

An option's total follows from the option alone. So which of two is preferred never depends on a third
(independence of irrelevant alternatives), as it did where the bend of a frontier or a share of the others'
figures decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.core.defaults import VALUE_OF_TIME_USD_PER_H
from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import Job, Option, Tier

# Half an hour of somebody who wraps a model in DDP, or makes it resume from a checkpoint, before the job can
# start. It is more than any job of some minutes could gain from a second GPU.
CHANGE_S = 1800.0
# Lines of a script or of its requirements, which take no time to speak of.
_OF_A_LINE = frozenset(
    {Code.ADD_GRAD_SCALER, Code.ALLOW_TF32, Code.INSTALL_FOR_CUDA_12, Code.USE_AUTOCAST, Code.USE_WORKERS}
)

Preference = tuple[float, float, float, str]


def value_of_time(job: Job) -> float:
    """Dollars that an hour until the job is done is worth."""
    given = job.value_of_time_usd_per_h
    return VALUE_OF_TIME_USD_PER_H if given is None else given


def is_guess(option: Option) -> bool:
    """Whether nobody has paid its price."""
    return option.plan.price is not None and option.plan.price.is_guess


def change_s(option: Option) -> float:
    """Seconds until the script is ready for the plan; 0 where it is as it is, or but for a line."""
    return CHANGE_S if any(c.code not in _OF_A_LINE for c in option.script_changes) else 0.0


def total_usd(option: Option, value_usd_per_h: float) -> float:
    """Expected cost, and the worth of the expected time until the job is done."""
    waited_s = option.expected.time_s + change_s(option)
    return option.expected.counted_usd + value_usd_per_h * waited_s / HOUR_S


def preference(option: Option, value_usd_per_h: float) -> Preference:
    """Less is preferred: the total, then the faster; where draws never end, by the medians; then by id."""
    medians = option.cost_usd.p50 + value_usd_per_h * option.time_s.p50 / HOUR_S
    return total_usd(option, value_usd_per_h), option.expected.time_s, medians, option.plan.id


def least_total(options: Sequence[Option], value_usd_per_h: float) -> Option:
    """The option that is preferred to all others."""
    return min(options, key=lambda option: preference(option, value_usd_per_h))


def why_least(option: Option, value_usd_per_h: float) -> Finding:
    """The figures that decided."""
    return finding(
        Code.BEST_OF_TOTAL,
        value_usd_per_h=value_usd_per_h,
        cost_usd=option.expected.counted_usd,
        time_s=option.expected.time_s,
        change_s=change_s(option),
        is_price_derived=is_guess(option),
    )


def break_even_wait_s(own: Option, rented: Option, value_usd_per_h: float) -> float:
    """The wait from which on renting pays: where both totals are equal; below 0 it always does.

    ``total_rented = total_own + v (wait - expected wait)``
    """
    saved_usd = total_usd(rented, value_usd_per_h) - total_usd(own, value_usd_per_h)
    return own.expected.wait_s + saved_usd / value_usd_per_h * HOUR_S


def wait_or_rent(options: Sequence[Option], value_usd_per_h: float) -> dict[str, list[Finding]]:
    """Advice by plan id: for each plan of a cluster, and for the rented one it is compared with.

    A cluster's plans are each compared with the best rented plan; that one is told of each cluster's best.
    """
    ending = [option for option in options if math.isfinite(option.expected.time_s)]
    rented = [option for option in ending if option.plan.tier is Tier.CLOUD]
    own = [option for option in ending if option.plan.tier is Tier.CLUSTER]
    if not rented or not own:
        return {}
    best = least_total(rented, value_usd_per_h)
    advice = {option.plan.id: [_advice(option, best, value_usd_per_h)] for option in own}
    of_each: dict[str, list[Option]] = {}
    for option in own:
        of_each.setdefault(option.plan.provider, []).append(option)
    advice[best.plan.id] = [
        advice[least_total(of_each[name], value_usd_per_h).plan.id][0] for name in sorted(of_each)
    ]
    return advice


def _advice(own: Option, rented: Option, value_usd_per_h: float) -> Finding:
    return finding(
        Code.RENT_OR_WAIT,
        own_id=own.plan.id,
        rented_id=rented.plan.id,
        value_usd_per_h=value_usd_per_h,
        break_even_wait_s=break_even_wait_s(own, rented, value_usd_per_h),
        mean_wait_s=None if own.wait_s is None else own.expected.wait_s,
    )
