"""A Recommendation as a document: the table, what to take and why in words, and changes of the script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.core.findings.about_answers import AssumedOfOptions
from advisor.core.findings.about_options import ApprovalNeeded, Unknown
from advisor.core.units import format_duration, format_usd
from advisor.core.values import ChangeGain, Option, Recommendation
from advisor.report import document as doc
from advisor.report import option_facts
from advisor.report.option_charts import time_over_cost
from advisor.report.option_facts import STATUS_OF_REMOVAL, selection, where
from advisor.report.options_table import options_sheet, options_table, page_table, short_table
from advisor.report.plain import shown_code
from advisor.report.words import rule_text, sentence, sentences, told, warnings_json
from advisor.report.words.sentences import named_work
from recommender.ranking.value import work_alone_decides, worth_for
from recommender.ranking.what_ifs import WhatIfGain

if TYPE_CHECKING:
    from advisor.edits.patch import Patch

GAIN_COLUMNS = doc.columns(
    "Change", ("Training", doc.PLAIN), ("Rent", doc.PLAIN), "Of a sample's time", "Odds", wraps=False
)


def gains_table(recommendation: Recommendation) -> doc.Table:
    """A row for each change that was asked for and that the recommended machine can show."""
    rows = tuple(_gain_rows(recommendation.gains))
    return doc.Table(columns=GAIN_COLUMNS, rows=rows, caption="What if", keeps_words=False, ends_blank=False)


def gain_notes(recommendation: Recommendation) -> Iterator[doc.Section]:
    """What has no room in a row: where a change leads to another machine, and why others have no figures."""
    gains = recommendation.gains
    moves = [f"{one.change}: {_in_short(one.instead)}" for one in gains if one.instead is not None]
    if moves:
        yield doc.Section("With it, another would be recommended:", tuple(moves))
    without: dict[str, list[str]] = {}
    for gain in gains:
        if gain.why_not is not None:
            without.setdefault(sentence(gain.why_not), []).append(gain.change)
    if without:
        entries = (f"{', '.join(changes)}: {why}" for why, changes in without.items())
        yield doc.Section("Nothing to gain, or not known:", tuple(entries))


def _gain_rows(gains: Iterable[ChangeGain]) -> Iterator[doc.Row]:
    for gain in gains:
        if (saved := gain.saved_share) is None:
            continue
        direction = "more" if round(saved.p50, 2) < 0 else "less"
        low, high = sorted(edge * 100 * (1 if direction == "less" else -1) for edge in (saved.p10, saved.p90))
        share = doc.Worded(f"{abs(saved.p50) * 100:.0f} % {direction} ({low:.0f} .. {high:.0f})", saved.p50)
        odds = None if gain.p_faster is None else doc.Worded(f"{gain.p_faster:.0%}", gain.p_faster)
        time, rent = _change(gain.saved_s, format_duration), _change(gain.saved_usd, format_usd)
        tone = doc.Tone.GOOD if saved.p10 > 0 else doc.Tone.PLAIN
        yield doc.Row((gain.change, time, rent, share, odds), tone)


def _change(saved: float | None, words: Callable[[float], str]) -> doc.Worded | None:
    return None if saved is None else doc.Worded(_less_or_more(saved, words), saved)


def _less_or_more(saved: float, words: Callable[[float], str]) -> str:
    """``28 min less``, ``6 min more``; ``the same`` where no digit of it would show."""
    amount = words(abs(saved))
    if amount == words(0.0):
        return "the same"
    return f"{amount} {'less' if saved > 0 else 'more'}"


def gain_json(gain: ChangeGain) -> Mapping[str, object]:
    """One change as a member of ``what_ifs``, see docs/json.md."""
    return {
        "change": gain.change,
        "option": None if gain.option is None else gain.option.plan.id,
        "instead": None if gain.instead is None else gain.instead.plan.id,
        **doc.facts_of(gain, "saved_s saved_usd saved_share p_faster"),
        **told("why_not", gain.why_not),
    }


def patch_document(patch: Patch) -> doc.Document:
    """The diff alone, for ``git apply``; what is not in it stands beside it in JSON."""
    return doc.Document(
        facts={
            "changes": patch.changes,
            "diff": patch.diff,
            "refused": [{"change": change, **told("why_not", why)} for change, why in patch.refused.items()],
        },
        blocks=(doc.Lines(tuple(_lines(patch)), are_code=True),) if patch.diff else (),
    )


def prints_as_it_is(patch: Patch) -> bool:
    """Whether the printed diff is the diff: what could move a terminal's cursor is printed as an escape."""
    return "".join(f"{shown_code(line)}\n" for line in _lines(patch)) == patch.diff


def _lines(patch: Patch) -> list[str]:
    return patch.diff.removesuffix("\n").split("\n")


def recommendation_document(
    recommendation: Recommendation,
    *,
    top: int | None,
    is_short: bool = False,
    what_if: WhatIfGain | None = None,
    plot: bool = False,
    recorded_as: str | None = None,
) -> doc.Document:
    """The whole answer; on a terminal and in Markdown on one screen, if it is to be short.

    ``top`` rows of the ranking where it is not short, and on a page (None for all); ``what_if`` is the change
    of the script that helps most, and ``plot`` draws time over cost instead of the table.
    """
    options = cache(partial(option_facts.options_facts, recommendation))
    divided = None if what_if is None else _divided(what_if, recommendation)
    # A table begins with a blank line of its own.
    table = short_table(recommendation) if is_short else options_table(recommendation, top)
    body: tuple[doc.Block, ...] = (doc.BLANK, time_over_cost(recommendation, top)) if plot else (table,)
    shown = _listed_ids(recommendation) if is_short else selection(recommendation, top)
    rests = _rests_on(recommendation, 0 if plot else len(shown))
    below = (*_what_if(recommendation, what_if, is_short=is_short), *rests, *_gains(recommendation))
    return doc.Document(
        facts=doc.Late(
            lambda: {
                **option_facts.recommendation_facts(recommendation, options(), recorded_as=recorded_as),
                "what_ifs": list(map(gain_json, recommendation.gains)),
                "divided": divided and option_facts.option_alone(divided, worth_for(recommendation.job)),
            }
        ),
        blocks=(*_summary(recommendation), *body, *below),
        is_letter=True,
        sheet=lambda: options_sheet(recommendation, options()),
        title=f"Where to run {recommendation.script.name or 'this script'}",
        page=lambda: _page(recommendation, top, what_if),
        of_moment=frozenset({"recorded_as"}),
    )


def subject_of(recommendation: Recommendation) -> str:
    """What it comes to in one line: ``train.py: aws g6.xlarge us-east-1 spot, 3.1 h for $1.20``."""
    chosen = recommendation.chosen
    return f"{recommendation.script.name}: {'nothing is feasible' if chosen is None else _in_short(chosen)}"


def _page(
    recommendation: Recommendation, top: int | None, what_if: WhatIfGain | None
) -> tuple[doc.Block, ...]:
    """In the same order; then the chart, more rows, and what a terminal shows where it is asked for."""
    rows = {option.plan.id for _, option in selection(recommendation, top)} | _listed_ids(recommendation)
    what_ifs = _what_if(recommendation, what_if, is_short=False)
    below = (*what_ifs, *_rests_on(recommendation, len(rows)), *_gains(recommendation))
    more = time_over_cost(recommendation, top), page_table(recommendation, top)
    assumed = assumptions_document(recommendation).blocks
    return (*_summary(recommendation), short_table(recommendation), *below, *more, *assumed)


def _listed_ids(recommendation: Recommendation) -> set[str]:
    return {row.option.plan.id for row in recommendation.shortlist}


def _gains(recommendation: Recommendation) -> tuple[doc.Block, ...]:
    table = gains_table(recommendation)
    return (*((doc.BLANK, table) if table.rows else ()), *gain_notes(recommendation))


def notebook_document(recommendation: Recommendation) -> doc.Document:
    """The same on one screen, with the warnings below."""
    below = (
        *_rests_on(recommendation, len(_listed_ids(recommendation))),
        *doc.warnings_of(sentences(recommendation.warnings)),
    )
    return doc.Document(facts={}, blocks=(*_summary(recommendation), short_table(recommendation), *below))


def assumptions_document(recommendation: Recommendation) -> doc.Document:
    """All that the answer rests on: why it is recommended, what is known of it, and what was assumed."""
    chosen = recommendation.chosen
    blocks: list[doc.Block] = []
    if chosen is not None:
        why = f"Recommended: {where(chosen)}, {rule_text(recommendation)}."
        blocks.append(doc.Section(why, tuple(sentences((*chosen.script_changes, *chosen.reasons)))))
        blocks += [_paragraph(text) for text in _picks(recommendation, chosen)]
    warnings = tuple(sentences(recommendation.warnings))
    title = "Assumed, left out or uncertain:" if warnings else "Nothing was assumed."
    blocks.append(doc.Section(title, warnings))
    return doc.Document(
        facts={
            "recommended": recommendation.recommended,
            "rule": rule_text(recommendation) or None,
            "reasons": [] if chosen is None else sentences(chosen.reasons),
            **warnings_json(recommendation.warnings),
        },
        blocks=tuple(blocks),
    )


# What an answer rests on, in as few words as a list of them has room for; by code, or by what is unknown.
_ASSUMED = {
    "cloud-wait": "waits for machines",
    "cluster-wait": "the wait for the cluster",
    "data-size": "no data set to copy",
    "data-place": "data outside the clouds",
    "data-region-unknown": "the region of the data",
    "rates": "some rates of disks and transfer",
    "prices-computed": "some prices, from others",
    "opt-in-regions": "no regions that must be enabled first",
}


def in_short(warning: Finding) -> str | None:
    """What was assumed, in a few words; None for any other warning."""
    return _ASSUMED.get(warning.what if isinstance(warning, Unknown | AssumedOfOptions) else warning.code)


# --- words ------------------------------------------------------------------------------------------


def _summary(recommendation: Recommendation) -> tuple[doc.Section, ...]:
    if recommendation.recommended is None:
        return (_paragraph("Nothing is feasible. The nearest options:"),)
    reasons = () if recommendation.chosen is None else recommendation.chosen.reasons
    needed = sentences(reason for reason in reasons if isinstance(reason, ApprovalNeeded))
    texts = *sentences(recommendation.summary), *(text[0].upper() + text[1:] for text in needed)
    return tuple(_paragraph(f"{text}.") for text in texts)


def _paragraph(text: str) -> doc.Section:
    return doc.Section(text, ())


def _picks(recommendation: Recommendation, chosen: Option) -> Iterator[str]:
    by_id = {option.plan.id: option for option in recommendation.options}
    for pick in recommendation.picks:
        picked = by_id[pick.plan_id]
        if picked is not chosen:
            name = pick.name.replace("-", " ").capitalize()
            yield f"{name}: {_in_short(picked)} ({sentence(pick.reason)})."
    other, worth = recommendation.with_work, worth_for(recommendation.job)
    if not chosen.work and other is not None and work_alone_decides(chosen, other, worth):
        yield f"If the work on {_script(recommendation)} were done: {_in_short(other)}."


def _script(recommendation: Recommendation) -> str:
    return PurePath(recommendation.script.name).name or "the script"


def _rests_on(recommendation: Recommendation, num_shown: int) -> Iterator[doc.Block]:
    """What the rows lack; the same with the batch held; what was assumed, and what is not shown."""
    if recommendation.recommended is not None and recommendation.as_it_is is None:
        yield _paragraph(f"With {_script(recommendation)} as it is, no machine does the job.")
    if (held := recommendation.batch_held) is not None:
        fits = "" if held.feasible else f" ({STATUS_OF_REMOVAL[held.removed_by[0]]})"
        takes = f"#1 takes {_time_and_cost(held)}{fits}"
        yield _paragraph(f"With the script's own batch (--scaling strong), {takes}.")
    said = []
    if recommendation.recommended is not None and (hour_usd := worth_for(recommendation.job).hour_usd):
        hours = f"${hour_usd:g} for each hour"
        said.append(f"Total: cost + work + {hours}, as means: high prices and long waits lift it.")
    if assumed := list(filter(None, map(in_short, recommendation.warnings))):
        more = f" and {len(assumed) - 1} more facts" if len(assumed) > 1 else ""
        said.append(f"Assumed: {assumed[0]}{more} (--assumptions).")
    hidden = len(recommendation.options) + len(recommendation.what_ifs) - num_shown
    if hidden > 0:
        said.append(f"Not shown: {hidden:,} options (--all, --explain #).")
    if said:
        yield _paragraph(" ".join(said))


def _in_short(option: Option) -> str:
    needs = f", with {named_work(option.work)}" if option.work else ""
    return f"{where(option)}{needs}, {_time_and_cost(option)}"


def _time_and_cost(option: Option) -> str:
    return f"{format_duration(option.time_s.p50)} for {format_usd(option.cost_usd.p50)}"


def _what_if(
    recommendation: Recommendation, what_if: WhatIfGain | None, *, is_short: bool
) -> Iterator[doc.Block]:
    """What a change to the script would bring the same machine, and which other would then be recommended."""
    if what_if is None or what_if.option is None:
        return
    before, same, option = recommendation.chosen, what_if.same, what_if.option
    if (divided := _divided(what_if, recommendation)) is not None:
        yield _paragraph(_divided_in_short(divided))
        return
    more = f"--explain {option.plan.id}" if recommendation.what_ifs else "--what-if all"
    if before is None or same is None:
        then = "" if before is None else ", would be recommended"
        yield _paragraph(f"What if {what_if.change}: {_in_short(option)}{then} ({more}).")
        return
    saved = f"{_time_and_cost(option)}, {_saved(before, option)}"
    if is_short:
        yield _paragraph(f"What if {what_if.change}: {saved} ({more}).")
        return
    yield _paragraph(
        f"What if {what_if.change}: {where(option)}, {_time_and_cost(option)} instead of"
        f" {_time_and_cost(before)}: {_saved(before, option)} ({more})."
    )
    if what_if.instead is not None:
        yield _paragraph(f"Then {_in_short(what_if.instead)}, would be recommended.")


def _divided(what_if: WhatIfGain, recommendation: Recommendation) -> Option | None:
    """The option of a script that divides its model otherwise than the job supposes; None for any other."""
    option = what_if.option
    return None if option is None or option.estimate.split == recommendation.job.split else option


def _divided_in_short(option: Option) -> str:
    """What would run a model that no GPU holds in whole, and how to see all of it."""
    split = option.estimate.split.name
    must = "; ".join(sentences(option.script_changes[:1]))
    asked = " ".join(f"--suppose {part}" for part in split.split("+"))
    return (
        f"It would fit if the script divided its model ({split}): {_in_short(option)}. For that, {must}. All"
        f" such plans: {asked}."
    )


def _saved(before: Option, after: Option) -> str:
    """``$15.08 and 1 h 33 min less``; the time alone where the cost is not known."""
    time = _less_or_more(before.time_s.p50 - after.time_s.p50, format_duration)
    if before.plan.usd_per_h is None:
        return time
    cost = _less_or_more(before.cost_usd.p50 - after.cost_usd.p50, format_usd)
    amount, _, direction = cost.rpartition(" ")
    return f"{amount} and {time}" if time.endswith(f" {direction}") else f"{cost} and {time}"
