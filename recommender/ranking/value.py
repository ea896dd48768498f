"""The rule of the choice: the least of expected cost and expected time, at what an hour is worth.

An option's total follows from the option alone. So which of two is preferred never depends on a third
(independence of irrelevant alternatives).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.findings import Finding
from advisor.core.findings.about_answers import BestOfTotal
from advisor.core.findings.about_options import RentOrWait
from advisor.core.iterables import grouped
from advisor.core.limits import CHANGE_USD, VALUE_OF_TIME_USD_PER_H
from advisor.core.units import HOUR_S
from advisor.core.values import Job, Option, Tier, Work
from recommender.outcome.bill import is_guessed

# The wait for someone to wrap a model in DDP. No job of some minutes gains as much from a second
# GPU, whatever an hour is worth.
CHANGE_S = 1800.0
Preference = tuple[float, float, float, bool, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What counts besides the bill."""

    hour_usd: float = VALUE_OF_TIME_USD_PER_H
    """For an hour until the job is done."""
    change_usd: float = CHANGE_USD
    """For changes to a script of more than a line, once."""


def worth_for(job: Job) -> Worth:
    """What someone said, else the defaults."""
    hour_usd, change_usd = job.value_of_time_usd_per_h, job.change_usd
    return Worth(
        hour_usd=VALUE_OF_TIME_USD_PER_H if hour_usd is None else hour_usd,
        change_usd=CHANGE_USD if change_usd is None else change_usd,
    )


def num_changes(option: Option) -> int:
    """How often the work of a change counts: once for what runs the script there, once for checkpoints."""
    work = option.work
    return len(work) if len(work) < 2 else 1 + (Work.CHECKPOINTS in work)


def change_s(option: Option) -> float:
    """Seconds until the script is ready for the plan."""
    return CHANGE_S * num_changes(option)


def change_usd(option: Option, worth: Worth) -> float:
    """Dollars until the script is ready for the plan."""
    return worth.change_usd * num_changes(option)


def total_usd(option: Option, worth: Worth) -> float:
    """Expected cost, what changing the script adds, and the worth of the expected time till the end."""
    waited_usd = worth.hour_usd * option.expected.time_s / HOUR_S if worth.hour_usd else 0.0
    return option.expected.counted_usd + waited_usd + change_total_usd(option, worth)


def change_total_usd(option: Option, worth: Worth) -> float:
    """What changing the script adds to the total."""
    return changes_usd(num_changes(option), worth)


def changes_usd(times: int, worth: Worth) -> float:
    """What so many changes of a script come to: work, and the wait for it."""
    return worth.change_usd * times + worth.hour_usd * (CHANGE_S * times) / HOUR_S


def work_alone_decides(chosen: Option, other: Option, worth: Worth) -> bool:
    """Whether the other would be preferred if its work on the script were done."""
    return total_usd(other, worth) - change_total_usd(other, worth) < total_usd(chosen, worth)


def whole_usd(option: Option, worth: Worth) -> float:
    """Expected cost, and what changing the script costs."""
    return option.expected.counted_usd + change_usd(option, worth)


def whole_s(option: Option) -> float:
    """Expected seconds until the job is done, those of changing the script among them."""
    return option.expected.time_s + change_s(option)


def even_usd_per_h(one: Option, other: Option, worth: Worth) -> float:
    """The worth of an hour at which both totals are equal; 0 or less where none makes them so."""
    saved_usd = whole_usd(other, worth) - whole_usd(one, worth)
    longer_s = whole_s(one) - whole_s(other)
    return saved_usd / longer_s * HOUR_S if longer_s else 0.0


def preference(option: Option, worth: Worth) -> Preference:
    """Less is preferred: the total, then time; medians where draws never end; enough quota; then by id."""
    medians = option.cost_usd.p50 + (worth.hour_usd and worth.hour_usd * option.time_s.p50 / HOUR_S)
    total = total_usd(option, worth)
    return total, option.expected.time_s, medians, option.plan.lacks_quota, option.plan.id


def least_total(options: Sequence[Option], worth: Worth) -> Option:
    """The option that is preferred to all others."""
    return min(options, key=lambda option: preference(option, worth))


def why_least(option: Option, worth: Worth) -> Finding:
    """The figures that decided."""
    return BestOfTotal(
        value_usd_per_h=worth.hour_usd,
        cost_usd=option.expected.counted_usd,
        time_s=option.expected.time_s,
        change_s=change_s(option),
        change_usd=change_usd(option, worth),
        work=list(option.work),
        is_price_derived=is_guessed(option.plan),
    )


def break_even_wait_s(own: Option, rented: Option, worth: Worth) -> float:
    """The wait from which on renting pays: where both totals are equal; below 0 it always does.

    ``total_rented = total_own + v (wait - expected wait)``
    """
    saved_usd = total_usd(rented, worth) - total_usd(own, worth)
    return own.expected.wait_s + saved_usd / worth.hour_usd * HOUR_S


def wait_or_rent(options: Sequence[Option], worth: Worth) -> dict[str, list[Finding]]:
    """Advice by plan id: for each plan of a cluster, and for the rented one it is compared with.

    A cluster's plans are each compared with the best rented plan, and that one with each cluster's best.
    """
    ending = [option for option in options if math.isfinite(option.expected.time_s)]
    rented = [option for option in ending if option.plan.tier is Tier.CLOUD]
    own = [option for option in ending if option.plan.tier is Tier.CLUSTER]
    if not rented or not own or not worth.hour_usd:
        return {}  # where waiting costs nothing, no wait is too long
    best = least_total(rented, worth)
    advice: dict[str, list[Finding]] = {}
    for option in own:
        one = RentOrWait(
            own_id=option.plan.id,
            rented_id=best.plan.id,
            value_usd_per_h=worth.hour_usd,
            break_even_wait_s=break_even_wait_s(option, best, worth),
            mean_wait_s=None if option.wait_s is None else option.expected.wait_s,
        )
        advice[option.plan.id] = [one]
    of_each = grouped(own, lambda option: option.plan.provider)
    advice[best.plan.id] = [advice[least_total(of_each[name], worth).plan.id][0] for name in sorted(of_each)]
    return advice
