"""Why an option was picked."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.report.words.table import Words


def best_of_total(*, value_usd_per_h: float, cost_usd: float, time_s: float) -> str:
    """Cost and the worth of the time together."""
    cost, time = format_usd(cost_usd), format_duration(time_s)
    return (
        f"the least expected cost and time at ${value_usd_per_h:g}/h: {cost} and {time}, means of the draws"
    )


def cheapest(*, is_cost_known: bool) -> str:
    """What it is the least of."""
    return "the least median cost" + ("" if is_cost_known else ", which is unknown and counts as 0")


def cheapest_of_equals(*, least_saving_share: float) -> str:
    """Nothing is worth its price."""
    return f"the cheapest: what is faster saves less than {least_saving_share * 100:g} % of the time"


def safest(*, limits: Sequence[str], p_met: float, is_preemptible: bool, p90_over_median: float) -> str:
    """How sure it is to go as predicted."""
    held = f"{' and '.join(limits)} met with p {p_met:.2f}, " if limits else ""
    can = "can be preempted" if is_preemptible else "is not preempted"
    return f"the surest: {held}{can}, p90 is {p90_over_median:.1f} times the median"


PICKS: Words = {
    Code.BEST_AT_KNEE: "the best value: from here speed gets dear, and savings slow",
    Code.BEST_OF_PRODUCT: "the best value: the least time x cost",
    Code.BEST_OF_TOTAL: best_of_total,
    Code.CHEAPEST: cheapest,
    Code.CHEAPEST_OF_EQUALS: cheapest_of_equals,
    Code.COST_OF_PICK_UNKNOWN: "{rule}; what it costs is unknown",
    Code.FASTEST: "the least median time",
    Code.OBJECTIVE_OF_POLICY: "the policy's objective: {reason}",
    Code.ONLY_ONE: "the only one that nothing feasible beats in time and cost",
    Code.SAFEST: safest,
}
