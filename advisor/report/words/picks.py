"""Why an option was picked."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.report.words.table import Words


def best_of_total(
    *,
    value_usd_per_h: float,
    cost_usd: float,
    time_s: float,
    change_s: float,
    change_usd: float,
    is_price_derived: bool,
) -> str:
    """Expected cost and the worth of the expected time, and what else was counted."""
    cost, time = format_usd(cost_usd), format_duration(time_s)
    whole = f"the least expected cost and time at ${value_usd_per_h:g}/h: {cost} and {time} on average"
    if change_s:
        whole += f", and {format_usd(change_usd)} and {format_duration(change_s)} to change the script"
    return whole + (", at the p90 of a price that nobody quoted" if is_price_derived else "")


def cheapest(*, is_cost_known: bool, is_guess_below: bool) -> str:
    """What it is the least of."""
    guess = ", where a price that nobody quoted counts at its p90" if is_guess_below else ""
    return f"the least median cost{guess}{_if_unknown(is_cost_known)}"


def safest(
    *, limits: Sequence[str], p_met: float, is_preemptible: bool, cost_p90_usd: float, is_cost_known: bool
) -> str:
    """How sure it is to go well."""
    held = f"{' and '.join(limits)} met with p {p_met:.2f}, " if limits else ""
    can = "can be preempted" if is_preemptible else "is not preempted"
    least = f"the least cost at p90: {format_usd(cost_p90_usd)}{_if_unknown(is_cost_known)}"
    return f"{held}{can}, {least}"


def _if_unknown(is_cost_known: bool) -> str:
    return "" if is_cost_known else ", which is unknown and counts as 0"


PICKS: Words = {
    Code.BEST_OF_TOTAL: best_of_total,
    Code.CHEAPEST: cheapest,
    Code.COST_OF_PICK_UNKNOWN: "{rule}; what it costs is unknown",
    Code.FASTEST: "the least median time",
    Code.OBJECTIVE_OF_POLICY: "the policy's objective: {reason}",
    Code.SAFEST: safest,
}
