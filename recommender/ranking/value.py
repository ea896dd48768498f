"""What an hour is worth: the option of least expected total, and the wait that makes renting pay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import Option, Tier
from recommender.outcome.evaluate import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """Expectations of one option over its draws; infinite where some draw never ends."""

    option: Option
    wait_s: float
    time_s: float
    cost_usd: float

    def total_usd(self, value_usd_per_h: float) -> float:
        """Cost and the worth of the time until the job is done."""
        return self.cost_usd + value_usd_per_h * self.time_s / HOUR_S


def expected(judged: Judged) -> Valued:
    """The mean of the draws."""
    time_s = float(judged.time_s.mean())
    running_s = judged.option.plan.startup_s + float(judged.train_s.mean())
    return Valued(
        option=judged.option,
        wait_s=time_s - running_s if math.isfinite(time_s) else 0.0,
        time_s=time_s,
        cost_usd=float(judged.cost_usd.mean()),
    )


def least_total(valued: Sequence[Valued], value_usd_per_h: float) -> Valued:
    """The option of least expected cost and time together; of equal ones the faster, then by id."""

    def order(item: Valued) -> tuple[float, float, str]:
        return item.total_usd(value_usd_per_h), item.time_s, item.option.plan.id

    return min(valued, key=order)


def break_even_wait_s(own: Valued, rented: Valued, value_usd_per_h: float) -> float:
    """The wait from which on renting pays: where both totals are equal; below 0 it always does.

    ``cost_rented + v time_rented = cost_own + v (wait + time_own without its wait)``
    """
    saved_h = (rented.cost_usd - own.cost_usd) / value_usd_per_h
    return saved_h * HOUR_S + rented.time_s - (own.time_s - own.wait_s)


def wait_or_rent(valued: Sequence[Valued], value_usd_per_h: float) -> dict[str, list[Finding]]:
    """Advice by plan id: for each plan of a cluster, and for the rented one it is compared with.

    A cluster's plans are each compared with the best rented plan; that one is told of each cluster's best.
    """
    rented = [v for v in valued if v.option.plan.tier is Tier.CLOUD and math.isfinite(v.time_s)]
    own = [v for v in valued if v.option.plan.tier is Tier.CLUSTER and math.isfinite(v.time_s)]
    if not rented or not own or not value_usd_per_h:
        return {}
    best = least_total(rented, value_usd_per_h)
    advice = {item.option.plan.id: [_advice(item, best, value_usd_per_h)] for item in own}
    clusters = sorted({item.option.plan.provider for item in own})
    of_each = [
        least_total([v for v in own if v.option.plan.provider == name], value_usd_per_h) for name in clusters
    ]
    advice[best.option.plan.id] = [advice[item.option.plan.id][0] for item in of_each]
    return advice


def _advice(own: Valued, rented: Valued, value_usd_per_h: float) -> Finding:
    return finding(
        Code.RENT_OR_WAIT,
        own_id=own.option.plan.id,
        rented_id=rented.option.plan.id,
        value_usd_per_h=value_usd_per_h,
        break_even_wait_s=break_even_wait_s(own, rented, value_usd_per_h),
        mean_wait_s=None if own.option.wait_s is None else own.wait_s,
    )
