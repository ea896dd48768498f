"""A Recommendation as a table and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_duration_short, format_usd
from advisor.core.values import Job, Option, Recommendation, Trace
from advisor.report.estimates import estimate_json
from advisor.report.plain import stacked
from advisor.report.rows import Format, console, print_rows, to_json
from advisor.report.text import with_p90
from advisor.report.words import finding_json, sentence, sentences, warnings_json

COLUMNS = ("Status", "#", "Where", "GPUs", "Iteration", "Time (p90)", "Cost (p90)")
# GPUs above their place: side by side they would leave no room for time and cost.
STACKED = "GPUs, and where"
NARROW_COLUMNS = ("Status", "#", STACKED, "Time (p90)", "Cost")
NARROW = 110
RIGHT = frozenset({"#", "Iteration", "Time (p90)", "Cost (p90)", "Cost"})
_STATUS_OF_REMOVAL = {
    Code.MEMORY: "does not fit",
    Code.SHARDING: "another world",
    Code.SPOT: "hopeless on spot",
    Code.SOFTWARE: "unsupported",
    Code.POLICY: "policy",
    Code.QUOTA: "over quota",
    Code.BUDGET: "over budget",
    Code.DEADLINE: "too late",
}
_STYLES = {"recommended": "bold green", "frontier": "green", "": ""}


def ranked(recommendation: Recommendation) -> list[Option]:
    """The frontier by time, its ties, other feasible options, the removed, and what-ifs, each by cost."""
    place = {plan_id: i for i, plan_id in enumerate(recommendation.frontier)}

    def order(option: Option) -> tuple[int, float, str]:
        if option.plan.id in place:
            return 0, place[option.plan.id], ""
        tie = option.tie_with if option.feasible and not option.what_if else None
        group = 4 if option.what_if else 3 if not option.feasible else 2 if tie is None else 1
        return group, place.get(tie or "", option.cost_usd.p50), option.plan.id

    return sorted((*recommendation.options, *recommendation.what_ifs), key=order)


def status(option: Option, recommendation: Recommendation) -> str:
    """A few words on where an option stands; empty for a feasible, dominated one."""
    if option.plan.id == recommendation.recommended:
        return "recommended"
    if option.plan.id in recommendation.frontier:
        return "frontier"
    if option.what_if:
        return f"what if {option.what_if}"
    if option.removed_by:
        return _STATUS_OF_REMOVAL[option.removed_by[0]]
    return "" if option.tie_with is None else f"tie with #{_row(option.tie_with, recommendation)}"


def _row(plan_id: str, recommendation: Recommendation) -> int:
    """The number of a row of the frontier, which comes first in the table."""
    return recommendation.frontier.index(plan_id) + 1


def selection(recommendation: Recommendation, top: int | None) -> list[tuple[int, Option]]:
    """Numbered options worth showing: ``top`` of the ranking, one removed for each reason, own machines.

    Of the what-ifs those of the recommended plan, and the cheapest of each change.
    """
    numbered = list(enumerate(ranked(recommendation), start=1))
    if top is None or len(numbered) <= top:
        return numbered
    changed = f"{recommendation.recommended}+"
    own = [(n, o) for n, o in numbered if o.plan.offer is None and not o.what_if]
    own += [(n, o) for n, o in numbered if o.what_if and o.plan.id.startswith(changed)]
    kinds: dict[str | None, tuple[int, Option]] = {}
    for n, option in numbered:
        kinds.setdefault(status(option, recommendation).partition(" #")[0], (n, option))
    must = dict((*own, *kinds.values()))
    for n, option in numbered:
        if len(must) >= top:
            break
        must.setdefault(n, option)
    return sorted(must.items())


def print_options(recommendation: Recommendation, output: Format, *, top: int | None) -> None:
    """The ranked table to stdout, as text, CSV or Markdown."""
    if output is Format.CSV:
        _print_csv(recommendation)
        return
    cells = table_rows(recommendation, top)
    is_narrow = output is Format.TABLE and console().width < max(NARROW, _needed_width(cells))
    columns = NARROW_COLUMNS if is_narrow else COLUMNS
    rows = [[row[column] for column in columns] for row in cells]
    styles = [_STYLES.get(row["Status"], "dim") for row in cells]
    print_rows(columns, rows, output, right=RIGHT, styles=styles, wrapping=frozenset({"Where", STACKED}))


def table_rows(recommendation: Recommendation, top: int | None) -> list[dict[str, str]]:
    """The texts of each row of a table, by column."""
    return [
        _cells(number, option, status(option, recommendation))
        for number, option in selection(recommendation, top)
    ]


def _needed_width(cells: Sequence[Mapping[str, str]]) -> int:
    """Characters of the wide table if places are broken between words alone."""
    widest = {name: max(len(name), *(len(row[name]) for row in cells)) for name in COLUMNS}
    widest["Where"] = max(len(word) for row in cells for word in row["Where"].split())
    return sum(widest.values()) + 2 * len(COLUMNS)


CSV_COLUMNS = (
    "id", "status", "tier", "provider", "instance_type", "region", "zone", "market", "gpu", "num_gpus",
    "usd_per_h", "price_retrieved_at", "iteration_s_p50", "time_s_p50", "time_s_p90", "cost_usd_p50",
    "cost_usd_p90", "p_within_budget", "p_within_deadline", "memory_bytes", "removed_by",
)  # fmt: skip


def _print_csv(recommendation: Recommendation) -> None:
    """Every option as plain numbers, for spreadsheets: seconds, dollars, bytes."""
    rows = []
    for option in ranked(recommendation):
        facts = {"status": status(option, recommendation), **_option(option, set(), None)}
        for name in ("iteration_s", "time_s", "cost_usd"):
            facts |= {f"{name}_{quantile}": value for quantile, value in facts[name].items()}
        rows.append(["" if facts[name] is None else str(facts[name]) for name in CSV_COLUMNS])
    print_rows(CSV_COLUMNS, rows, Format.CSV)


def _cells(number: int, option: Option, state: str) -> dict[str, str]:
    return {
        "Status": state,
        "#": str(number),
        "Where": where(option),
        "GPUs": gpus(option),
        STACKED: stacked(" ".join([gpus(option), *_market(option)]), _place(option)),
        "Iteration": format_duration(option.estimate.iteration_s.p50),
        "Time (p90)": with_p90(option.time_s, format_duration_short),
        "Cost (p90)": with_p90(option.cost_usd, format_usd),
        "Cost": format_usd(option.cost_usd.p50),
    }


def where(option: Option) -> str:
    """``aws p4d.24xlarge use1-az1 spot``, ``lab (cluster)`` or ``this machine``."""
    return " ".join([_place(option), *_market(option)])


def _place(option: Option) -> str:
    plan = option.plan
    if plan.offer is None:
        return "this machine" if plan.provider == "local" else f"{plan.provider} (cluster)"
    return f"{plan.provider} {plan.offer.instance_type} {plan.offer.zone or plan.offer.region}"


def _market(option: Option) -> list[str]:
    return [] if option.plan.offer is None else [option.plan.offer.market]


def gpus(option: Option) -> str:
    """``8 x L40S``."""
    return f"{option.plan.num_gpus} x {option.plan.gpu}"


# --- JSON ------------------------------------------------------------------------------------------


def recommendation_json(
    recommendation: Recommendation, trace: Trace, *, recorded_as: str | None = None
) -> str:
    """``advisor recommend --format json``, see docs/json.md."""
    frontier = set(recommendation.frontier)
    return to_json(
        {
            "job": _job(recommendation.job, trace),
            "options": [
                _option(option, frontier, recommendation.recommended) for option in ranked(recommendation)
            ],
            "frontier": recommendation.frontier,
            "recommended": recommendation.recommended,
            "rule": None if recommendation.rule is None else sentence(recommendation.rule),
            "rule_finding": None if recommendation.rule is None else finding_json(recommendation.rule),
            "recorded_as": recorded_as,
            "picks": {pick.name.value: pick.plan_id for pick in recommendation.picks},
            "pick_reasons": {pick.name.value: sentence(pick.reason) for pick in recommendation.picks},
            "pick_reason_findings": {
                pick.name.value: finding_json(pick.reason) for pick in recommendation.picks
            },
            **warnings_json(recommendation.warnings),
        }
    )


def option_json(option: Option, recommendation: Recommendation) -> str:
    """``--explain ID --format json``: one option as in the list, and how its iteration time was found."""
    body = _option(option, set(recommendation.frontier), recommendation.recommended)
    return to_json({"option": body, "estimate": estimate_json(option.estimate)})


def _job(job: Job, trace: Trace) -> Mapping[str, Any]:
    return {
        "script": trace.script,
        "arguments": trace.arguments,
        "origin_gpu": trace.origin_gpu,
        "batch_size": trace.batch_size,
        **asdict(job),
        "iterations_per_epoch": job.iterations_per_epoch or trace.iterations_per_epoch,
    }


def _option(option: Option, frontier: set[str], recommended: str | None) -> Mapping[str, Any]:
    plan, estimate, offer = option.plan, option.estimate, option.plan.offer
    return {
        "id": plan.id,
        "tier": plan.tier,
        "provider": plan.provider,
        "instance_type": offer.instance_type if offer else None,
        "region": offer.region if offer else None,
        "zone": offer.zone if offer else None,
        "gpu": plan.gpu,
        "num_gpus": plan.num_gpus,
        "num_nodes": plan.num_nodes,
        "market": offer.market if offer else None,
        "usd_per_h": plan.usd_per_h,
        "list_usd_per_h": offer.list_usd_per_h if offer else None,
        "contracted_usd_per_h": offer.contracted_usd_per_h if offer else None,
        "effective_usd_per_h": offer.effective_usd_per_h if offer else None,
        "storage_usd_per_h": plan.storage_usd_per_h,
        "egress_usd": plan.egress_usd,
        "rates": plan.rates,
        "price_retrieved_at": offer.retrieved_at.isoformat() if offer else None,
        "price_source": offer.source if offer else None,
        "iterations": option.iterations,
        "iteration_s": asdict(estimate.iteration_s),
        "wait_s": asdict(option.wait_s) if option.wait_s else None,
        "train_s": asdict(option.train_s),
        "time_s": asdict(option.time_s),
        "cost_usd": asdict(option.cost_usd),
        "cost_breakdown": option.cost_breakdown_usd,
        "p_within_budget": option.p_within_budget,
        "p_within_deadline": option.p_within_deadline,
        "memory_bytes": estimate.memory_bytes,
        "fits_memory": estimate.fits_memory,
        "risk": sentence(option.risk),
        "risk_finding": finding_json(option.risk),
        "feasible": option.feasible,
        "removed_by": ", ".join(option.removed_by) or None,
        "removed_by_codes": option.removed_by,
        "script_changes": sentences(option.script_changes),
        "script_change_findings": list(map(finding_json, option.script_changes)),
        "what_if": option.what_if,
        "on_frontier": plan.id in frontier,
        "tie_with": option.tie_with,
        "recommended": plan.id == recommended,
        "reasons": sentences(option.reasons),
        "reason_findings": list(map(finding_json, option.reasons)),
    }


def find_option(recommendation: Recommendation, wanted: str) -> Option | Sequence[str]:
    """The option with this id or row number, or the ids there are."""
    options = ranked(recommendation)
    row = wanted.lstrip("#")
    # Not isdigit, which holds for a superscript; and int refuses thousands of digits.
    if row.isdecimal() and len(row) < 10 and 1 <= int(row) <= len(options):
        return options[int(row) - 1]
    by_id = {option.plan.id: option for option in options}
    return by_id.get(wanted) or list(by_id)
