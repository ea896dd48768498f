"""A Recommendation as a document: the table, what to take and why in words, and changes of the script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from advisor.core.units import format_duration, format_usd
from advisor.core.values import ChangeGain, Interval, Option, PickName, Recommendation
from advisor.edits.patch import Patch
from advisor.report.cells import CENTS, PLAIN, Cell, Worded
from advisor.report.document import (
    BLANK,
    Block,
    Column,
    Document,
    Late,
    Lines,
    Row,
    Section,
    Table,
    Tone,
    warnings_of,
)
from advisor.report.option_charts import time_over_cost
from advisor.report.options import (
    STATUS_OF_REMOVAL,
    option_alone,
    options_facts,
    recommendation_facts,
    selection,
    where,
)
from advisor.report.options_table import options_sheet, options_table, page_table
from advisor.report.plain import shown_code
from advisor.report.words import finding_json, rule_text, sentence, sentences
from advisor.report.words.table import named
from recommender.ranking.value import work_alone_decides, worth_for

if TYPE_CHECKING:
    from recommender.ranking.variants import WhatIf


GAIN_COLUMNS = (
    Column("Change", wraps=False),
    Column("Training saved", PLAIN, wraps=False),
    Column("Rent saved", CENTS, wraps=False),
    Column("Of a sample's time", wraps=False),
    Column("Odds", wraps=False),
    Column("Then"),
)


def gains_table(recommendation: Recommendation) -> Table:
    """A row for each change that was asked for."""
    rows = tuple(Row(_cells(gain), _tone(gain)) for gain in recommendation.gains)
    return Table(columns=GAIN_COLUMNS, rows=rows, caption="What if", keeps_words=False)


def _tone(gain: ChangeGain) -> Tone:
    if gain.saved_share is None:
        return Tone.FAINT
    return Tone.GOOD if gain.saved_share.p10 > 0 else Tone.PLAIN


def _cells(gain: ChangeGain) -> tuple[Cell, ...]:
    if gain.saved_share is None:
        return gain.change, None, None, None, None, _then(gain)
    share = Worded(_percent(gain.saved_share), gain.saved_share.p50)
    odds = None if gain.p_faster is None else Worded(f"{gain.p_faster:.0%}", gain.p_faster)
    return gain.change, _signed(gain.saved_s), gain.saved_usd, share, odds, _then(gain)


def _signed(saved_s: float | None) -> Worded | None:
    if saved_s is None:
        return None
    return Worded(f"{'-' if saved_s < 0 else ''}{format_duration(abs(saved_s))}", saved_s)


def _percent(share: Interval) -> str:
    """``46 % (31 .. 61)``: the median, and within which 8 of 10 lie."""
    return f"{share.p50 * 100:.0f} % ({share.p10 * 100:.0f} .. {share.p90 * 100:.0f})"


def _then(gain: ChangeGain) -> str:
    why = "" if gain.why_not is None else sentence(gain.why_not)
    move = "" if gain.instead is None else f"would be recommended: {where(gain.instead)}"
    return "; ".join(filter(None, (why, move)))


def gain_json(gain: ChangeGain) -> Mapping[str, object]:
    """One change as a member of ``what_ifs``, see docs/json.md."""
    return {
        "change": gain.change,
        "option": None if gain.option is None else gain.option.plan.id,
        "instead": None if gain.instead is None else gain.instead.plan.id,
        "saved_s": gain.saved_s,
        "saved_usd": gain.saved_usd,
        "saved_share": None if gain.saved_share is None else asdict(gain.saved_share),
        "p_faster": gain.p_faster,
        "why_not": None if gain.why_not is None else sentence(gain.why_not),
        "why_not_finding": None if gain.why_not is None else finding_json(gain.why_not),
    }


def patch_document(patch: Patch) -> Document:
    """The diff alone, for ``git apply``; what is not in it stands beside it in JSON."""
    return Document(
        facts={
            "changes": patch.changes,
            "diff": patch.diff,
            "refused": [
                {"change": change, "why_not": sentence(why), "why_not_finding": finding_json(why)}
                for change, why in patch.refused.items()
            ],
        },
        blocks=(Lines(tuple(_lines(patch)), are_code=True),) if patch.diff else (),
    )


def prints_as_it_is(patch: Patch) -> bool:
    """Whether the printed diff is the diff: what could move a terminal's cursor is printed as an escape."""
    return "".join(f"{shown_code(line)}\n" for line in _lines(patch)) == patch.diff


def _lines(patch: Patch) -> list[str]:
    return patch.diff.removesuffix("\n").split("\n")


MOST_ROWS_OF_A_NOTEBOOK = 15
_NAMES = {
    PickName.CHEAPEST: "Cheapest",
    PickName.FASTEST: "Fastest",
    PickName.BEST_VALUE: "Best value",
    PickName.SAFEST: "Safest",
}


def recommendation_document(
    recommendation: Recommendation,
    *,
    top: int | None,
    what_if: WhatIf | None = None,
    plot: bool = False,
    recorded_as: str | None = None,
) -> Document:
    """The whole answer.

    Args:
        recommendation: with what-ifs if they are to be rows.
        top: rows to show, None for all.
        what_if: the change of the script that helps most, for two sentences.
        plot: time over cost instead of the table.
        recorded_as: id in the ledger, for JSON.
    """
    options = cache(partial(options_facts, recommendation))
    # A table begins with a blank line of its own.
    body: tuple[Block, ...] = (options_table(recommendation, top),)
    if plot:
        body = (BLANK, time_over_cost(recommendation, top))
    gains = (BLANK, gains_table(recommendation)) if recommendation.gains else ()
    below = (*_words(recommendation, None if plot else top), *_what_if(recommendation, what_if), *gains)
    blocks = (*_summary(recommendation), *body, *below)
    return Document(
        facts=Late(lambda: _facts(recommendation, options(), recorded_as, what_if)),
        blocks=blocks,
        sheet=lambda: options_sheet(recommendation, options()),
        title=f"Where to run {recommendation.script.name or 'this script'}",
        page=lambda: _page(recommendation, top, below),
        of_moment=frozenset({"recorded_as"}),
    )


def _facts(
    recommendation: Recommendation,
    options: Sequence[Mapping[str, object]],
    recorded_as: str | None,
    what_if: WhatIf | None,
) -> Mapping[str, object]:
    facts = recommendation_facts(recommendation, options, recorded_as=recorded_as)
    divided = None if what_if is None else _divided(what_if, recommendation)
    return {
        **facts,
        "what_ifs": list(map(gain_json, recommendation.gains)),
        "divided": None if divided is None else option_alone(divided, worth_for(recommendation.job)),
    }


def subject_of(recommendation: Recommendation) -> str:
    """What it comes to in one line: ``train.py: aws g6.xlarge us-east-1 spot, 3.1 h for $1.20``."""
    chosen = recommendation.chosen
    return f"{recommendation.script.name}: {'nothing is feasible' if chosen is None else _in_short(chosen)}"


def _page(recommendation: Recommendation, top: int | None, below: Sequence[Block]) -> tuple[Block, ...]:
    """The chart and the table, and what a terminal has beside the answer: warnings."""
    table = page_table(recommendation, top, caption="Options")
    middle = time_over_cost(recommendation, top), table
    warnings = warnings_of(sentences(recommendation.warnings))
    return (*_summary(recommendation), *middle, *below, *warnings)


def notebook_document(recommendation: Recommendation) -> Document:
    """The table, with what is recommended above it and the warnings below."""
    caption = "Nothing is feasible"
    if recommendation.chosen is not None:
        caption = f"Recommended: {where(recommendation.chosen)}, {rule_text(recommendation)}"
    table = options_table(recommendation, MOST_ROWS_OF_A_NOTEBOOK, caption=caption)
    hidden = len(recommendation.options) - len(table.rows)
    notes = (Lines((f"{hidden} more options are not shown.",)),) if hidden else ()
    return Document(facts={}, blocks=(table, *notes, *warnings_of(sentences(recommendation.warnings))))


# --- words ------------------------------------------------------------------------------------------


def _summary(recommendation: Recommendation) -> tuple[Section, ...]:
    """Above the table, for whoever reads no further."""
    return tuple(_paragraph(f"{text}.") for text in sentences(recommendation.summary))


def _paragraph(text: str) -> Section:
    """A text of its own, broken between words."""
    return Section(text, ())


def _words(recommendation: Recommendation, top: int | None) -> Iterator[Block]:
    num_options = len(recommendation.options) + len(recommendation.what_ifs)
    hidden = 0 if top is None else num_options - len(selection(recommendation, top))
    if hidden:
        yield _paragraph(f"{hidden} more rows: --all. Any row in full: --explain ROW.")
    chosen = recommendation.chosen
    if chosen is None:
        return
    yield BLANK
    notes = tuple(f"- {line}" for line in sentences((*chosen.script_changes, *chosen.reasons)))
    yield Section(f"Recommended: {where(chosen)}, {rule_text(recommendation)}.", notes)
    by_id = {option.plan.id: option for option in recommendation.options}
    for pick in recommendation.picks:
        picked = by_id[pick.plan_id]
        if chosen.plan.id not in (picked.plan.id, picked.folded_into):
            yield _paragraph(f"{_NAMES[pick.name]}: {_in_short(picked)} ({sentence(pick.reason)}).")
    yield from _by_work(recommendation, chosen)


def _by_work(recommendation: Recommendation, chosen: Option) -> Iterator[Block]:
    """The best for the script as it is, beside the best with work; and what holding its batch costs."""
    script, as_it_is = PurePath(recommendation.script.name).name or "the script", recommendation.as_it_is
    if chosen.work:
        text = "no machine does the job" if as_it_is is None else _in_short(as_it_is)
        yield _paragraph(f"With {script} as it is: {text}.")
    elif (other := recommendation.with_work) is not None and work_alone_decides(
        chosen, other, worth_for(recommendation.job)
    ):
        yield _paragraph(f"If the work on {script} were done: {_in_short(other)}.")
    if (held := recommendation.batch_held) is not None:
        fits = "" if held.feasible else f" ({STATUS_OF_REMOVAL[held.removed_by[0]]})"
        yield _paragraph(
            f"With the batch of {script} held (--scaling strong): {_time_and_cost(held)} there{fits}."
        )


def _in_short(option: Option) -> str:
    needs = f", with {named(option.work)}" if option.work else ""
    return f"{where(option)}{needs}, {_time_and_cost(option)}"


def _time_and_cost(option: Option) -> str:
    return f"{format_duration(option.time_s.p50)} for {format_usd(option.cost_usd.p50)}"


def _what_if(recommendation: Recommendation, what_if: WhatIf | None) -> Iterator[Block]:
    """What a change to the script would bring the same machine, and which other would then be recommended."""
    if what_if is None or what_if.option is None:
        return
    before, same, option = recommendation.chosen, what_if.same, what_if.option
    if (divided := _divided(what_if, recommendation)) is not None:
        yield _paragraph(_divided_in_short(divided))
        return
    line = f"What if {what_if.change}: {_in_short(option)}"
    if before is not None:
        saved = f" instead of {_time_and_cost(before)}: {_saved(before, option)} less"
        line += saved if same is not None else ", would be recommended"
    more = f"--explain {option.plan.id}" if recommendation.what_ifs else "--what-if all"
    yield _paragraph(f"{line} ({more}).")
    if same is not None and what_if.instead is not None:
        yield _paragraph(f"Then {_in_short(what_if.instead)}, would be recommended.")


def _divided(what_if: WhatIf, recommendation: Recommendation) -> Option | None:
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
    """``$15.08 and 1 h 33 min``; the time alone where nobody knows the cost."""
    saved = format_duration(before.time_s.p50 - after.time_s.p50)
    if before.plan.usd_per_h is None:
        return saved
    return f"{format_usd(before.cost_usd.p50 - after.cost_usd.p50)} and {saved}"
