"""Shows a Recommendation, and ends with exit code 4 if nothing in it is feasible."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.listening import warn
from advisor.core.errors import InputError, NothingFeasibleError
from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Option, Recommendation, Trace
from advisor.report.document import Document
from advisor.report.explain import option_document
from advisor.report.options import find_option, where
from advisor.report.printing import Format, print_document, write_page
from advisor.report.recommendation import recommendation_document
from advisor.report.words import sentence, sentences

if TYPE_CHECKING:
    from recommender.ranking.best_change import WhatIf
    from recommender.ranking.nearest import Nearest


def show(
    recommendation: Recommendation,
    trace: Trace,
    *,
    output: Format,
    explained: str | None,
    top: int | None,
    what_if: WhatIf | None = None,
    plot: bool = False,
    recorded_as: str | None = None,
    hand_out: Callable[[Document], None] | None = None,
    page: Path | None = None,
) -> None:
    """Results to stdout or to whoever hands them out, warnings to stderr.

    Args:
        recommendation: with what-ifs if they are to be rows.
        trace: of the script.
        output: in which format.
        explained: an option's id or the number of its row, to show it alone.
        top: rows to show, None for all.
        what_if: the change of the script that helps most, for two sentences.
        plot: draw time over cost instead of the table.
        recorded_as: id in the ledger, for JSON.
        hand_out: prints or sends the answer; None prints it.
        page: a file that gets the whole answer as a page, whatever else is shown.

    Raises:
        InputError: ``explained`` names no option, a plot is in no other format, the page cannot be written.
        NothingFeasibleError: after the rows with their reasons were shown.
    """
    if explained is not None and output in (Format.CSV, Format.MARKDOWN):
        raise InputError("--explain prints text, or JSON with --json: leave --format out.")
    if plot and (explained is not None or output is not Format.TABLE):
        raise InputError("--plot draws in the terminal: leave --explain, --format and --json out.")
    answer = recommendation_document(
        recommendation, trace, top=top, what_if=what_if, plot=plot, recorded_as=recorded_as
    )
    document = answer
    if explained is not None:
        document = option_document(_find(recommendation, explained, top), recommendation)
    (hand_out or partial(print_document, output=output))(document)
    warn(sentences(recommendation.warnings))
    if page is not None:
        write_page(answer, page)
    if recommendation.recommended is None:
        raise NothingFeasibleError(_nothing_feasible(recommendation))


def _find(recommendation: Recommendation, wanted: str, top: int | None) -> Option:
    match = find_option(recommendation, wanted, top)
    if isinstance(match, Option):
        return match
    from advisor.core.errors import did_you_mean

    raise InputError(
        f"there is no option {wanted!r}: give an id, or the number of a row that is shown; --all"
        f" shows every row.{did_you_mean(wanted, match)}"
    )


def _nothing_feasible(recommendation: Recommendation) -> str:
    from recommender.ranking.nearest import nearest

    near = nearest(recommendation.options, recommendation.job)
    if near:
        misses = [f"{where(item.option)} is {_gap(item)}" for item in near]
        return f"nothing is feasible. Nearest: {'; '.join(misses)}."
    forbidden = [o for o in recommendation.options if o.removed_by == (Code.POLICY,)]
    if forbidden:
        option = min(forbidden, key=lambda o: (o.cost_usd.p50, o.plan.id))
        rule = _why(option, Code.POLICY)
        return f"nothing that the policy keeps is feasible. {where(option)} would be, but for {rule}."
    too_large = _removed_by(recommendation, Code.MEMORY)
    of_other_worlds = _removed_by(recommendation, Code.SHARDING)
    if of_other_worlds and not too_large:
        return f"nothing can be judged: {_why(of_other_worlds[0], Code.SHARDING)}."
    refused = _removed_by(recommendation, Code.SPOT)
    if refused and not too_large:
        option = min(refused, key=lambda o: o.time_s.p50)
        return f"nothing is feasible. Nearest: {where(option)}, {_why(option, Code.SPOT)}."
    if not too_large:
        return "PyTorch no longer runs on any of these GPUs: widen --gpu, --provider or --region."
    option = min(too_large, key=_missing_bytes)
    return f"nothing fits in memory. Nearest: {where(option)}: {_why(option, Code.MEMORY)}."


def _removed_by(recommendation: Recommendation, code: Code) -> list[Option]:
    return [option for option in recommendation.options if code in option.removed_by]


def _why(option: Option, code: Code) -> str:
    """The reason for which the option is removed."""
    return sentence(next(reason for reason in option.reasons if reason.code is code))


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
