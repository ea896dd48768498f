"""A Recommendation as a document: the ranked table or a chart, and in words what to take and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_duration_short, format_usd
from advisor.core.values import Option, PickName, Recommendation
from advisor.report.cells import DURATION, PLAIN, SHORT_DURATION, USD, Cell, Worded, with_p90
from advisor.report.document import (
    BLANK,
    NARROW,
    Block,
    Column,
    Document,
    Late,
    Lines,
    Row,
    Section,
    Table,
    Tone,
    columns,
    warnings_of,
)
from advisor.report.options import (
    gpus,
    has_figures,
    market,
    option_alone,
    options_facts,
    place,
    ranked,
    recommendation_facts,
    selection,
    status,
    where,
)
from advisor.report.quotes import rent_text
from advisor.report.scatter import time_over_cost
from advisor.report.what_ifs import gain_json, gains_table
from advisor.report.words import rule_text, sentence, sentences

if TYPE_CHECKING:
    from recommender.ranking.variants import WhatIf

_STATUS = Column("Status", wraps=False)
_NUMBER = Column("#", PLAIN, wraps=False)
_WAIT = Column("Wait p90", SHORT_DURATION, wraps=False)
_TIME = Column("Time (p90)", SHORT_DURATION, wraps=False)
_COST = Column("Cost", USD, wraps=False)
_RENT = Column("USD/h, age", wraps=False)
_BINDS = Column("Binds", wraps=False)
COLUMNS = (
    _STATUS,
    _NUMBER,
    Column("Where"),
    Column("GPUs", wraps=False),
    _RENT,
    Column("Step, all GPUs", DURATION, wraps=False),
    _BINDS,
    _WAIT,
    _TIME,
    Column("Cost (p90)", USD, wraps=False),
)
# On a page that is too narrow for all, time and cost come before what they follow from.
_PAGE_ORDER = (0, 1, 2, 3, 8, 9, 4, 7, 5, 6)
# GPUs above their place: side by side they would leave no room for the rest.
_MACHINE = Column("GPUs, and where")
MIDDLE_COLUMNS = (_STATUS, _NUMBER, _MACHINE, _RENT, _BINDS, _WAIT, _TIME, _COST)
NARROW_COLUMNS = (_STATUS, _NUMBER, _MACHINE, _TIME, _COST)
# All of an option below each other, where words would have to be broken.
STACKED_COLUMNS = (_NUMBER, Column("GPUs, where, time (p90), cost"))
# Below this many characters all columns side by side would break the names of machines.
WIDE = 150
SHEET_COLUMNS = columns(
    "id", "status", "tier", "provider", "instance_type", "region", "zone", "market", "gpu", "num_gpus",
    "usd_per_h", "price_retrieved_at", "iteration_s_p50", "binds", "wait_s_p50", "wait_s_p90", "time_s_p50",
    "time_s_p90", "cost_usd_p50", "cost_usd_p90", "p_within_budget", "p_within_deadline", "memory_bytes",
    "removed_by", "folded_into", "num_nodes",
    kind=PLAIN,
)  # fmt: skip
_SHEET_NAMES = [column.name for column in SHEET_COLUMNS]
_OF_OTHER_RANKS = ("iteration_s_p50", "binds", "time_s_p50", "time_s_p90", "cost_usd_p50", "cost_usd_p90")
MOST_ROWS_OF_A_NOTEBOOK = 15
_TONES = {"recommended": Tone.BEST, "frontier": Tone.GOOD, "": Tone.PLAIN}
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
        sheet=lambda: _sheet(recommendation, options()),
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
        "divided": None if divided is None else option_alone(divided),
    }


def subject_of(recommendation: Recommendation) -> str:
    """What it comes to in one line: ``train.py: aws g6.xlarge us-east-1 spot, 3.1 h for $1.20``."""
    chosen = recommendation.chosen
    return f"{recommendation.script.name}: {'nothing is feasible' if chosen is None else _in_short(chosen)}"


def _page(recommendation: Recommendation, top: int | None, below: Sequence[Block]) -> tuple[Block, ...]:
    """The chart and the table, and what a terminal has beside the answer: warnings."""
    table = options_table(recommendation, top, caption="Options").in_order(_PAGE_ORDER)
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


def options_table(recommendation: Recommendation, top: int | None, *, caption: str = "") -> Table:
    """The options worth showing, what is recommended and the frontier first."""
    rows = enumerate(selection(recommendation, top), start=1)
    chosen = [(number, option, status(option, recommendation)) for number, option in rows]
    tones = [_TONES.get(state, Tone.FAINT) for *_, state in chosen]
    forms = [[form(*one) for one in chosen] for form in (_wide, _middle, _narrow, _stacked)]
    wide, middle, narrow, stacked = (tuple(map(Row, cells, tones)) for cells in forms)
    return Table(
        columns=COLUMNS,
        rows=wide,
        caption=caption,
        narrow=(
            Table(
                columns=MIDDLE_COLUMNS,
                rows=middle,
                narrow=(
                    Table(
                        columns=NARROW_COLUMNS,
                        rows=narrow,
                        narrow=(Table(columns=STACKED_COLUMNS, rows=stacked),),
                    ),
                ),
                narrow_below=NARROW,
            ),
        ),
        narrow_below=WIDE,
    )


def _wide(number: int, option: Option, state: str) -> tuple[Cell, ...]:
    machine = where(option) + _alike(option), gpus(option), _rent(option)
    if not has_figures(option):
        return state, number, *machine, None, None, _wait_s(option), None, None
    iteration_s, binds = option.estimate.iteration_s.p50, option.estimate.binds
    return state, number, *machine, iteration_s, binds, _wait_s(option), option.time_s, option.cost_usd


def _middle(number: int, option: Option, state: str) -> tuple[Cell, ...]:
    state, number, machine, time_s, usd = _narrow(number, option, state)
    binds = option.estimate.binds if has_figures(option) else None
    return state, number, machine, _rent(option), binds, _wait_s(option), time_s, usd


def _narrow(number: int, option: Option, state: str) -> tuple[str, int, tuple[str, str], Cell, Cell]:
    machine = " ".join([gpus(option), *market(option)]), place(option) + _alike(option)
    figures = (option.time_s, option.cost_usd.p50) if has_figures(option) else (None, None)
    return state, number, machine, *figures


def _stacked(number: int, option: Option, state: str) -> tuple[Cell, ...]:
    _, _, machine, _, _ = _narrow(number, option, state)
    figures = [with_p90(option.time_s, format_duration_short), format_usd(option.cost_usd.p50)]
    return number, (*machine, ", ".join(filter(None, (*(figures if has_figures(option) else []), state))))


def _rent(option: Option) -> Worded:
    return Worded(rent_text(option.plan), option.plan.usd_per_h)


def _wait_s(option: Option) -> float | None:
    return None if option.wait_s is None else option.wait_s.p90


def _alike(option: Option) -> str:
    """Of how many others the row speaks; which, and how far they lie from it, is among its notes."""
    facts = next((reason.facts for reason in option.reasons if reason.code is Code.ALIKE), None)
    if facts is None:
        return ""
    others = facts["num_of_other_gpus"]
    return f", +{facts['num_options']} like it" + (f" ({others} on other GPUs)" if others else "")


def _sheet(recommendation: Recommendation, facts: Sequence[Mapping[str, object]]) -> Table:
    """Every option as plain numbers, for spreadsheets: seconds, dollars, bytes."""
    rows = []
    for option, plain in zip(ranked(recommendation), facts, strict=True):
        values = {
            **plain,
            "status": status(option, recommendation),
            "iteration_s_p50": option.estimate.iteration_s.p50,
            "wait_s_p50": option.wait_s.p50 if option.wait_s else None,
            "wait_s_p90": option.wait_s.p90 if option.wait_s else None,
            "time_s_p50": option.time_s.p50,
            "time_s_p90": option.time_s.p90,
            "cost_usd_p50": option.cost_usd.p50,
            "cost_usd_p90": option.cost_usd.p90,
        }
        left_out = () if has_figures(option) else _OF_OTHER_RANKS
        cells = (None if name in left_out else values[name] for name in _SHEET_NAMES)
        rows.append(Row(tuple("" if cell is None else str(cell) for cell in cells)))
    return Table(columns=SHEET_COLUMNS, rows=tuple(rows))


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


def _in_short(option: Option) -> str:
    return f"{where(option)}, {_time_and_cost(option)}"


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
