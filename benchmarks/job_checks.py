"""Whether an answer holds, worked out anew from its JSON and its screen: nothing of advisor is asked.

The rule: least expected bill, plus what an hour is worth for each hour until the job is done, plus the work
on the script and the half hours that it takes.
"""

from __future__ import annotations

import math
from typing import Any

Row = dict[str, Any]
MOST_LINES, MOST_WARNINGS, COLUMNS = 24, 3, 100
# Rows like another are folded within a fifth of its cost and time.
FOLDED_WITHIN = 0.20
MINUTES_S = 1200.0
_HOUR_S = 3600.0


def chosen_of(document: Row) -> Row:
    """The recommended option."""
    return next(option for option in document["options"] if option["id"] == document["recommended"])


def total_usd(option: Row, hour_usd: float) -> float:
    """What the rule minimises."""
    expected, work = option["expected"], option["work"]
    if expected["counted_usd"] is None or expected["time_s"] is None:
        return math.inf
    hours = expected["time_s"] / _HOUR_S + work["hours"]
    return float(expected["counted_usd"] + hour_usd * hours + work["usd"])


def faults(document: Row, screen: str, warnings: str) -> list[str]:
    """What does not hold, in words; none where all does."""
    chosen, feasible = chosen_of(document), [one for one in document["options"] if one["feasible"]]
    return [
        *_not_least(document, chosen, feasible),
        *_not_said(document, chosen),
        *_outside_limits(document, chosen),
        *_better(document, chosen),
        *_folded_apart(feasible),
        *_too_long(screen, warnings),
    ]


def _not_least(document: Row, chosen: Row, feasible: list[Row]) -> list[str]:
    hour_usd = document["job"]["value_of_time_usd_per_h"]
    if hour_usd == 0 or document["job"]["pick"] is not None:
        return []
    own = total_usd(chosen, hour_usd)
    better = [one["id"] for one in feasible if total_usd(one, hour_usd) < own * (1 - 1e-9)]
    return [f"{better[0]} has a smaller total"] if better else []


def _not_said(document: Row, chosen: Row) -> list[str]:
    """The sentence under the pick: machine, cost, time, steps."""
    found = {one["code"]: one["facts"] for one in document["summary_findings"]}
    machine = found["summary-choice"]["machine"]["facts"]["plan_id"]
    said = found["summary-cost-and-time"]
    pairs = {
        "machine": (machine, chosen["id"]),
        "cost": (said["cost_p50_usd"], chosen["cost_usd"]["p50"]),
        "p90 of cost": (said["cost_p90_usd"], chosen["cost_usd"]["p90"]),
        "time": (said["time_p50_s"], chosen["time_s"]["p50"]),
        "p90 of time": (said["time_p90_s"], chosen["time_s"]["p90"]),
        "steps": (said["num_iterations"], chosen["iterations"]),
        "step": (said["iteration_s"], chosen["iteration_s"]["p50"]),
        "work": (found.get("summary-work", {"work": []})["work"], chosen["work"]["kinds"]),
    }
    return [f"the summary's {name} is {one}, the option's {other}" for name, (one, other) in pairs.items()
            if one != other]  # fmt: skip


def _outside_limits(document: Row, chosen: Row) -> list[str]:
    job = document["job"]
    limits = {"budget_usd": chosen["p_within_budget"], "deadline_s": chosen["p_within_deadline"]}
    return [
        f"{name} holds in {odds:.0%}"
        for name, odds in limits.items()
        if job[name] is not None and odds is not None and odds < job["confidence"]
    ]


def _better(document: Row, chosen: Row) -> list[str]:
    """Listed rows that are better in expected cost, expected time and work at once."""
    listed = {row["id"] for row in document["shortlist"]} - {chosen["id"]}
    return [
        f"{one['id']} is cheaper, faster and no more work"
        for one in document["options"]
        if one["id"] in listed
        and one["feasible"]
        and one["expected"]["counted_usd"] < chosen["expected"]["counted_usd"]
        and one["expected"]["time_s"] < chosen["expected"]["time_s"]
        and one["work"]["usd"] <= chosen["work"]["usd"]
    ]


def _folded_apart(feasible: list[Row]) -> list[str]:
    """Rows that are folded into one which is not within a fifth, or takes other work."""
    by_id = {one["id"]: one for one in feasible}
    pairs = [(one, by_id[one["folded_into"]]) for one in feasible if one["folded_into"] in by_id]
    return [
        f"{one['id']} is folded into {row['id']}"
        for one, row in pairs
        if one["work"]["kinds"] != row["work"]["kinds"] or _are_apart(one, row)
    ][:3]


def _are_apart(one: Row, row: Row) -> bool:
    """Of a job of minutes a dearer row may lie anywhere that is less than a minute faster."""
    time_s, usd = row["time_s"]["p50"], row["cost_usd"]["p50"]
    late_s, more_usd = one["time_s"]["p50"] - time_s, one["cost_usd"]["p50"] - usd
    is_of_minutes = time_s < MINUTES_S and more_usd >= 0
    is_like = abs(more_usd) <= FOLDED_WITHIN * usd + 1e-9 or is_of_minutes
    return not is_like or abs(late_s) > max(FOLDED_WITHIN * time_s, 60.0)


def _too_long(screen: str, warnings: str) -> list[str]:
    lines = screen.rstrip("\n").splitlines()
    num_warnings = sum(line.startswith("warning:") for line in warnings.splitlines())
    wide = [line for line in lines if len(line) > COLUMNS]
    return [
        *([f"{len(lines)} lines"] if len(lines) > MOST_LINES else []),
        *([f"a line of {len(wide[0])} characters"] if wide else []),
        *([f"{num_warnings} warnings"] if num_warnings > MOST_WARNINGS else []),
    ]
