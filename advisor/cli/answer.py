"""Shows a Recommendation, and ends with exit code 4 if nothing in it is feasible."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.listening import TERMINAL
from advisor.cli.options import ViewOptions
from advisor.core.errors import InputError, NothingFeasibleError, did_you_mean
from advisor.core.files import write_atomically
from advisor.core.findings import Finding, Removal, about_options
from advisor.core.findings.about_spending import PricesNotLive
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Option, Recommendation
from advisor.report import recommendation as document
from advisor.report.document import Document
from advisor.report.explain import option_document
from advisor.report.option_facts import find_option, numbered, selection, where
from advisor.report.plain import print_text
from advisor.report.printing import write_page
from advisor.report.words import sentence, sentences

# On standard error beside an answer.
MOST_WARNINGS = 3

if TYPE_CHECKING:
    from advisor.config.settings import Settings
    from advisor.service.recommend.recommending import RecommendAnswer
    from advisor.service.traces import TraceRequest
    from recommender.ranking.frontier import Nearest


def show(answer: RecommendAnswer, view: ViewOptions, hand_out: Callable[[Document], None]) -> None:
    """Results to anyone who hands them out, warnings to stderr.

    Args:
        view: what of it is shown, and the page that gets all of it in any case.

    Raises:
        InputError: ``explain`` names no option, the page cannot be written.
        NothingFeasibleError: after the rows with their reasons were shown.
    """
    recommendation = answer.recommendation
    whole = document.recommendation_document(
        recommendation,
        top=view.num_rows,
        is_short=view.is_short,
        what_if=answer.best_what_if,
        plot=view.plot,
        recorded_as=answer.entry_id,
    )
    hand_out(_part(answer, view) or whole)
    TERMINAL.warn(_most_serious(recommendation.warnings))
    if view.html is not None:
        write_page(whole, view.html)
    if recommendation.recommended is None:
        raise NothingFeasibleError(_nothing_feasible(recommendation))


def _most_serious(warnings: Sequence[Finding]) -> list[str]:
    """At most three lines: what the answer itself names in short is left to --assumptions."""
    # The age of prices is in the headline, too.
    ordered = sorted(warnings, key=lambda one: isinstance(one, PricesNotLive))
    serious = sentences(one for one in ordered if document.in_short(one) is None)
    if len(serious) <= MOST_WARNINGS:
        return serious
    first = serious[: MOST_WARNINGS - 1]
    return [*first, f"{len(serious) - len(first)} more: --assumptions shows all warnings"]


def _part(answer: RecommendAnswer, view: ViewOptions) -> Document | None:
    recommendation = answer.recommendation
    if view.assumptions:
        return document.assumptions_document(recommendation)
    if view.explain is not None:
        return option_document(find(recommendation, view.explain), recommendation)
    if view.curve is not None:
        from advisor.report.option_charts import curve_document
        from recommender.scaling_curve import curve_of

        curve = curve_of(view.curve, recommendation.options, recommendation.job)
        return curve_document(curve, recommendation)
    if answer.patch is None:
        return None
    if answer.patch.diff and not document.prints_as_it_is(answer.patch):
        TERMINAL.note("the script has characters that are not printed as they are: take the diff from --json")
    for change, why in answer.patch.refused.items():
        TERMINAL.note(f"{change} is not in the patch: {sentence(why)}")
    return document.patch_document(answer.patch)


def find(recommendation: Recommendation, wanted: str) -> Option:
    """The option with this id or number. Raises InputError: there is none."""
    match = find_option(recommendation, wanted)
    if isinstance(match, Option):
        return match
    raise InputError(
        f"there is no option {wanted!r}: give an id or a number; --all shows those of"
        f" every option.{did_you_mean(wanted, match)}"
    )


# Scripts whose rows are remembered.
_MOST_SCRIPTS = 20


def _rows_file() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("advisor") / "rows.json"


def _remembered() -> dict[str, dict[str, str]]:
    """By script: plans by the numbers of the rows that were shown last; nothing where no file can be read."""
    try:
        kept = json.loads(_rows_file().read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) and all(isinstance(rows, dict) for rows in kept.values()) else {}


def remember_rows(subject: str, recommendation: Recommendation, view: ViewOptions) -> None:
    """Keep what the numbers of the rows mean: another flag, or a new price, gives them to other plans."""
    by_id = numbered(recommendation)
    listed = (by_id[row.option.plan.id] for row in recommendation.shortlist)
    shown = {str(n): row.plan.id for n, row in (*selection(recommendation, view.num_rows), *listed)}
    kept = {**{name: rows for name, rows in _remembered().items() if name != subject}, subject: shown}
    newest = dict(list(kept.items())[-_MOST_SCRIPTS:])
    path = _rows_file()
    # A convenience, without which numbers are those of the question as it is typed.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(newest).encode(), private=True)


def meant_by(number: str, subject: str, recommendation: Recommendation) -> str:
    """The plan that had this number when rows were last shown for the script; else the number itself."""
    plan_id = _remembered().get(subject, {}).get(number)
    if plan_id is None:
        return number
    if isinstance(find_option(recommendation, str(plan_id)), Option):
        TERMINAL.note(f"row {number} of the answer shown last is {plan_id}")
        return str(plan_id)
    TERMINAL.note(
        f"row {number} of the answer shown last is no option of this question: {number} counts its own rows"
    )
    return number


_BUT_FOR: dict[type[Removal], tuple[str, str]] = {
    about_options.RemovedByPolicy: (" that the policy keeps", " for"),
    about_options.RemovedByQuota: (" that your quotas let start", " is"),
    about_options.RemovedByQueue: (" that its queue lets start", " is"),
    about_options.RemovedByHostMemory: ("", ""),
}


def _nothing_feasible(recommendation: Recommendation) -> str:
    from recommender.ranking.frontier import nearest

    near = nearest(recommendation.options, recommendation.job)
    if near:
        misses = [f"{where(item.option)} is {_gap(item)}" for item in near]
        return f"nothing is feasible. Nearest: {'; '.join(misses)}."
    for kind, (nothing, but) in _BUT_FOR.items():
        if (option := _cheapest_but_for(recommendation, kind)) is not None:
            return f"nothing{nothing} is feasible. {where(option)} would be, but{but} {_why(option, kind)}."
    too_large = _removed_by(recommendation, about_options.RemovedByMemory)
    of_other_worlds = _removed_by(recommendation, about_options.RemovedBySharding)
    if of_other_worlds and not too_large:
        return f"nothing can be judged: {_why(of_other_worlds[0], about_options.RemovedBySharding)}."
    if (option := _cheapest_but_for(recommendation, about_options.RemovedByAttention)) is not None:
        attention = _why(option, about_options.RemovedByAttention)
        return f"nothing is feasible. {where(option)} would be, but {attention}."
    refused = _removed_by(recommendation, about_options.RemovedBySpot)
    if refused and not too_large:
        option = min(refused, key=lambda o: o.time_s.p50)
        return f"nothing is feasible. Nearest: {where(option)}, {_why(option, about_options.RemovedBySpot)}."
    if not too_large:
        return "PyTorch no longer runs on any of these GPUs: widen --gpu, --provider or --region."
    option = min(too_large, key=lambda o: (o.estimate.memory_bytes or 0) - o.estimate.memory_limit_bytes)
    return f"nothing fits in memory. Nearest: {where(option)}: {_why(option, about_options.RemovedByMemory)}."


def _cheapest_but_for(recommendation: Recommendation, kind: type[Removal]) -> Option | None:
    """Of the options that nothing else removes."""
    kept = [option for option in recommendation.options if option.removed_by == (kind.code,)]
    return min(kept, key=lambda option: (option.cost_usd.p50, option.plan.id), default=None)


def _removed_by(recommendation: Recommendation, kind: type[Removal]) -> list[Option]:
    return [option for option in recommendation.options if kind.code in option.removed_by]


def _why(option: Option, kind: type[Removal]) -> str:
    return sentence(next(reason for reason in option.reasons if type(reason) is kind))


def _gap(item: Nearest) -> str:
    """By how much an option misses, or how unsure it is where its median does not."""
    gaps, cost_usd, time_s = [], item.option.cost_usd, item.option.time_s
    if over_usd := item.over_budget_usd:
        p90_usd = over_usd + cost_usd.p90 - cost_usd.p50
        gaps.append(f"{format_usd(over_usd)} over the budget in the median ({format_usd(p90_usd)} at p90)")
    if late_s := item.late_s:
        p90_s = late_s + time_s.p90 - time_s.p50
        gaps.append(f"{format_duration(late_s)} late in the median ({format_duration(p90_s)} at p90)")
    odds = [p for p in (item.option.p_within_budget, item.option.p_within_deadline) if p is not None]
    if gaps or not odds:
        return " and ".join(gaps)
    # Rounded down: a confidence that is rounded up would refuse the option again.
    surely = math.floor(min(odds) * 100 + 1e-9) / 100
    return f"within the limits with a probability of {surely:.0%} (--confidence {surely:.2f} allows it)"


def print_job_file(
    answer: RecommendAnswer, kind: str, wanted: str | None, trace: TraceRequest, settings: Settings
) -> None:
    """The file that starts the recommended option, or the one that was named.

    Raises InputError: there is no such option, nothing is recommended, or this kind cannot start it.
    """
    from advisor.core.findings.about_estimates import StartOnNodes, StartWithTorchrun
    from advisor.service.job_files import job_file
    from advisor.service.launching import handoff_of

    ranked = answer.recommendation
    option = ranked.chosen if wanted is None else find(ranked, wanted)
    if option is None:
        raise InputError("nothing is recommended, so nothing can be started.")
    handoff = handoff_of(answer, option, trace, settings.profile, settings.spot, settings.clusters)
    # How to start it is what the file itself says.
    work = [one for one in option.script_changes if not isinstance(one, StartOnNodes | StartWithTorchrun)]
    whole = replace(handoff, to_do=tuple(sentences(work)), grace_s=settings.run.grace)
    print_text(job_file(whole, kind).rstrip())
