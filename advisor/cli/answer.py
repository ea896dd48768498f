"""Shows a Recommendation, and ends with exit code 4 if nothing in it is feasible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.cli.listening import warn
from advisor.core.errors import InputError, NothingFeasibleError
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Option, PickName, Recommendation, Trace
from advisor.report.explain import explain
from advisor.report.options import (
    find_option,
    option_json,
    print_options,
    ranked,
    recommendation_json,
    selection,
    where,
)
from advisor.report.plain import print_lines, print_text
from advisor.report.rows import Format, console
from advisor.report.scatter import plot_options

if TYPE_CHECKING:
    from recommender.ranking.choose import Nearest

_NAMES = {
    PickName.CHEAPEST: "Cheapest",
    PickName.FASTEST: "Fastest",
    PickName.BEST_VALUE: "Best value",
    PickName.SAFEST: "Safest",
}


def show(
    recommendation: Recommendation,
    trace: Trace,
    *,
    output: Format,
    explained: str | None,
    top: int | None,
    what_if: Option | None = None,
    plot: bool = False,
    recorded_as: str | None = None,
) -> None:
    """Results to stdout, warnings to stderr.

    Args:
        recommendation: with what-ifs if they are to be rows.
        trace: of the script.
        output: in which format.
        explained: an option's id or row number, to show it alone.
        top: rows to show, None for all.
        what_if: the best of a changed script, for one line of text.
        plot: draw time over cost instead of the table.
        recorded_as: id in the ledger, for JSON.

    Raises:
        InputError: ``explained`` names no option, or a plot is wanted in another format.
        NothingFeasibleError: after the rows with their reasons were shown.
    """
    if explained is not None and output in (Format.CSV, Format.MARKDOWN):
        raise InputError("--explain prints text, or JSON with --json: leave --format out.")
    if plot and (explained is not None or output is not Format.TABLE):
        raise InputError("--plot draws in the terminal: leave --explain, --format and --json out.")
    if explained is not None:
        option = _find(recommendation, explained)
        if output is Format.JSON:
            print_text(option_json(option, recommendation))
        else:
            print_text(explain(option, recommendation, width=console().width))
    elif output is Format.JSON:
        print_text(recommendation_json(recommendation, trace, recorded_as=recorded_as))
    else:
        if plot:
            plot_options(recommendation)
        else:
            print_options(recommendation, output, top=top)
        if output is Format.TABLE:
            _print_words(recommendation, None if plot else top)
            _print_what_if(recommendation, what_if)
    warn(recommendation.warnings)
    if recommendation.recommended is None:
        raise NothingFeasibleError(_nothing_feasible(recommendation))


def _find(recommendation: Recommendation, wanted: str) -> Option:
    found = find_option(recommendation, wanted)
    if isinstance(found, Option):
        return found
    from advisor.core.errors import did_you_mean

    raise InputError(
        f"there is no option {wanted!r}: give an id or a row number.{did_you_mean(wanted, found)}"
    )


def _print_words(recommendation: Recommendation, top: int | None) -> None:
    hidden = len(ranked(recommendation)) - len(selection(recommendation, top))
    if hidden:
        print_lines(f"{hidden} more rows: --all. Any row in full: --explain ROW.")
    if recommendation.recommended is None:
        return
    by_id = {option.plan.id: option for option in recommendation.options}
    chosen = by_id[recommendation.recommended]
    print_lines("", f"Recommended: {where(chosen)}, {recommendation.rule}.")
    for line in (*chosen.script_changes, *chosen.reasons):
        print_lines(f"  - {line}")
    for pick in recommendation.picks:
        if pick.plan_id != chosen.plan.id:
            print_lines(f"{_NAMES[pick.name]}: {_in_short(by_id[pick.plan_id])} ({pick.reason}).")
    _print_ties([by_id[plan_id] for plan_id in recommendation.frontier])


def _print_ties(frontier: Sequence[Option]) -> None:
    """Rows of the frontier that tie with each other; other rows say it in their status."""
    from recommender.ranking.pareto import EPSILON

    row = {option.plan.id: number for number, option in enumerate(frontier, start=1)}
    pairs = {tuple(sorted((row[o.plan.id], row[o.tie_with]))) for o in frontier if o.tie_with is not None}
    if pairs:
        named = ", ".join(f"#{one} with #{other}" for one, other in sorted(pairs))
        print_lines(f"Ties, within {EPSILON * 100:g} % in time and cost: {named}.")


def _in_short(option: Option) -> str:
    time, cost = format_duration(option.time_s.p50), format_usd(option.cost_usd.p50)
    return f"{where(option)}, {time} for {cost}"


def _print_what_if(recommendation: Recommendation, option: Option | None) -> None:
    """What the best change to the script would bring, beside what is recommended for it as it is."""
    if option is None:
        return
    time, cost = format_duration(option.time_s.p50), format_usd(option.cost_usd.p50)
    line = f"What if {option.what_if}: {where(option)}, {time} for {cost}"
    chosen = next((o for o in recommendation.options if o.plan.id == recommendation.recommended), None)
    if chosen is not None:
        line += f" instead of {format_duration(chosen.time_s.p50)} for {format_usd(chosen.cost_usd.p50)}"
    more = f"--explain {option.plan.id}" if recommendation.what_ifs else "--what-if"
    print_lines(f"{line} ({more}).")


def _nothing_feasible(recommendation: Recommendation) -> str:
    from recommender.ranking.choose import nearest

    near = nearest(recommendation.options, recommendation.job)
    if near:
        misses = [f"{where(item.option)} is {_gap(item)}" for item in near]
        return f"nothing is feasible. Nearest: {'; '.join(misses)}."
    forbidden = [o for o in recommendation.options if o.removed_by == "policy"]
    if forbidden:
        option = min(forbidden, key=lambda o: (o.cost_usd.p50, o.plan.id))
        rule = option.reasons[0]
        return f"nothing that the policy keeps is feasible. {where(option)} would be, but for {rule}."
    too_large = [o for o in recommendation.options if "memory" in (o.removed_by or "")]
    asked = [reason for o in recommendation.options for reason in o.reasons if "--world" in reason]
    if asked and not too_large:
        return f"nothing can be judged: {asked[0]}."
    refused = [o for o in recommendation.options if "spot" in (o.removed_by or "")]
    if refused and not too_large:
        option = min(refused, key=lambda o: o.time_s.p50)
        return f"nothing is feasible. Nearest: {where(option)}, {option.reasons[0]}."
    if not too_large:
        return "PyTorch no longer runs on any of these GPUs: widen --gpu, --provider or --region."
    option = min(too_large, key=_missing_bytes)
    why = next((reason for reason in option.reasons if "fit" in reason), option.reasons[0])
    return f"nothing fits in memory. Nearest: {where(option)}: {why}."


def _gap(item: Nearest) -> str:
    """By how much an option misses, or how unsure it is where its median does not."""
    gaps = []
    if item.over_budget_usd:
        gaps.append(f"{format_usd(item.over_budget_usd)} over the budget")
    if item.late_s:
        gaps.append(f"{format_duration(item.late_s)} late")
    odds = [p for p in (item.option.p_within_budget, item.option.p_within_deadline) if p is not None]
    if gaps or not odds:
        return " and ".join(gaps)
    # Rounded down: a confidence that is rounded up would refuse the option again.
    surely = math.floor(min(odds) * 100 + 1e-9) / 100
    return f"within the limits with p {surely:.2f} only (--confidence {surely:.2f} allows it)"


def _missing_bytes(option: Option) -> int:
    return (option.estimate.memory_bytes or 0) - option.estimate.memory_limit_bytes
