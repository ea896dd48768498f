"""A Recommendation as a document: the ranked table or a chart, and in words what to take and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor.core.units import format_duration, format_usd
from advisor.core.values import Option, PickName, Recommendation, Trace
from advisor.report.cells import DURATION, PLAIN, SHORT_DURATION, USD, Cell
from advisor.report.document import NARROW, Block, Column, Document, Lines, Row, Section, Table, Tone, columns
from advisor.report.options import (
    gpus,
    market,
    options_facts,
    place,
    ranked,
    recommendation_facts,
    selection,
    status,
    where,
)
from advisor.report.plain import few
from advisor.report.quotes import rent_text
from advisor.report.scatter import time_over_cost
from advisor.report.words import rule_text, sentence, sentences

_STATUS = Column("Status", wraps=False)
_NUMBER = Column("#", PLAIN, wraps=False)
_TIME = Column("Time (p90)", SHORT_DURATION, wraps=False)
COLUMNS = (
    _STATUS,
    _NUMBER,
    Column("Where"),
    Column("GPUs", wraps=False),
    Column("USD/h, age"),
    Column("Iteration", DURATION, wraps=False),
    _TIME,
    Column("Cost (p90)", USD, wraps=False),
)
# GPUs above their place: side by side they would leave no room for time and cost.
NARROW_COLUMNS = (_STATUS, _NUMBER, Column("GPUs, and where"), _TIME, Column("Cost", USD, wraps=False))
SHEET_COLUMNS = columns(
    "id", "status", "tier", "provider", "instance_type", "region", "zone", "market", "gpu", "num_gpus",
    "usd_per_h", "price_retrieved_at", "iteration_s_p50", "time_s_p50", "time_s_p90", "cost_usd_p50",
    "cost_usd_p90", "p_within_budget", "p_within_deadline", "memory_bytes", "removed_by",
    kind=PLAIN,
)  # fmt: skip
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
    trace: Trace,
    *,
    top: int | None,
    what_if: Option | None = None,
    plot: bool = False,
    recorded_as: str | None = None,
) -> Document:
    """The whole answer.

    Args:
        recommendation: with what-ifs if they are to be rows.
        trace: of the script.
        top: rows to show, None for all.
        what_if: the best of a changed script, for one line of text.
        plot: time over cost instead of the table.
        recorded_as: id in the ledger, for JSON.
    """
    options = options_facts(recommendation)
    facts = recommendation_facts(recommendation, trace, options, recorded_as=recorded_as)
    body = time_over_cost(recommendation) if plot else options_table(recommendation, top)
    words = (*_words(recommendation, None if plot else top), *_what_if(recommendation, what_if))
    return Document(facts=facts, blocks=(body, *_lines(*words)), sheet=_sheet(recommendation, options))


def notebook_document(recommendation: Recommendation) -> Document:
    """The table, with what is recommended above it and the warnings below."""
    caption = "Nothing is feasible"
    for option in recommendation.options:
        if option.plan.id == recommendation.recommended:
            caption = f"Recommended: {where(option)}, {rule_text(recommendation)}"
    table = options_table(recommendation, MOST_ROWS_OF_A_NOTEBOOK, caption=caption)
    hidden = len(recommendation.options) - len(table.rows)
    notes = _lines(f"{hidden} more options are not shown.") if hidden else ()
    return Document(facts={}, blocks=(table, *notes, *warnings_of(sentences(recommendation.warnings))))


def warnings_of(warnings: Sequence[str]) -> tuple[Section, ...]:
    """A section of their own, for documents that are read without standard error."""
    return (Section("Warnings", tuple(few(warnings))),) if warnings else ()


def options_table(recommendation: Recommendation, top: int | None, *, caption: str = "") -> Table:
    """The options worth showing, the frontier first."""
    chosen = [(n, option, status(option, recommendation)) for n, option in selection(recommendation, top)]
    tones = [_TONES.get(state, Tone.FAINT) for *_, state in chosen]
    wide, narrow = [_wide(*one) for one in chosen], [_narrow(*one) for one in chosen]
    return Table(
        columns=COLUMNS,
        rows=tuple(map(Row, wide, tones)),
        caption=caption,
        narrow=(Table(columns=NARROW_COLUMNS, rows=tuple(map(Row, narrow, tones))),),
        narrow_below=NARROW,
    )


def _wide(number: int, option: Option, state: str) -> tuple[Cell, ...]:
    iteration_s = option.estimate.iteration_s.p50
    rent = rent_text(option.plan)
    return state, number, where(option), gpus(option), rent, iteration_s, option.time_s, option.cost_usd


def _narrow(number: int, option: Option, state: str) -> tuple[Cell, ...]:
    machine = " ".join([gpus(option), *market(option)]), place(option)
    return state, number, machine, option.time_s, option.cost_usd.p50


def _sheet(recommendation: Recommendation, facts: Sequence[Mapping[str, object]]) -> Table:
    """Every option as plain numbers, for spreadsheets: seconds, dollars, bytes."""
    rows = []
    for option, plain in zip(ranked(recommendation), facts, strict=True):
        values = {
            **plain,
            "status": status(option, recommendation),
            "iteration_s_p50": option.estimate.iteration_s.p50,
            "time_s_p50": option.time_s.p50,
            "time_s_p90": option.time_s.p90,
            "cost_usd_p50": option.cost_usd.p50,
            "cost_usd_p90": option.cost_usd.p90,
        }
        cells = (values[column.name] for column in SHEET_COLUMNS)
        rows.append(Row(tuple("" if cell is None else str(cell) for cell in cells)))
    return Table(columns=SHEET_COLUMNS, rows=tuple(rows))


# --- words ------------------------------------------------------------------------------------------


def _lines(*lines: str) -> tuple[Block, ...]:
    return (Lines(lines),) if lines else ()


def _words(recommendation: Recommendation, top: int | None) -> Iterator[str]:
    hidden = len(ranked(recommendation)) - len(selection(recommendation, top))
    if hidden:
        yield f"{hidden} more rows: --all. Any row in full: --explain ROW."
    if recommendation.recommended is None:
        return
    by_id = {option.plan.id: option for option in recommendation.options}
    chosen = by_id[recommendation.recommended]
    yield from ("", f"Recommended: {where(chosen)}, {rule_text(recommendation)}.")
    for line in sentences((*chosen.script_changes, *chosen.reasons)):
        yield f"  - {line}"
    for pick in recommendation.picks:
        if pick.plan_id != chosen.plan.id:
            yield f"{_NAMES[pick.name]}: {_in_short(by_id[pick.plan_id])} ({sentence(pick.reason)})."
    yield from _ties([by_id[plan_id] for plan_id in recommendation.frontier])


def _ties(frontier: Sequence[Option]) -> Iterator[str]:
    """Rows of the frontier that tie with each other; other rows say it in their status."""
    from recommender.ranking.pareto import EPSILON

    row = {option.plan.id: number for number, option in enumerate(frontier, start=1)}
    pairs = {tuple(sorted((row[o.plan.id], row[o.tie_with]))) for o in frontier if o.tie_with is not None}
    if pairs:
        named = ", ".join(f"#{one} with #{other}" for one, other in sorted(pairs))
        yield f"Ties, within {EPSILON * 100:g} % in time and cost: {named}."


def _in_short(option: Option) -> str:
    return f"{where(option)}, {_time_and_cost(option)}"


def _time_and_cost(option: Option) -> str:
    return f"{format_duration(option.time_s.p50)} for {format_usd(option.cost_usd.p50)}"


def _what_if(recommendation: Recommendation, option: Option | None) -> Iterator[str]:
    """What the best change to the script would bring, beside what is recommended for it as it is."""
    if option is None:
        return
    line = f"What if {option.what_if}: {_in_short(option)}"
    chosen = next((o for o in recommendation.options if o.plan.id == recommendation.recommended), None)
    if chosen is not None:
        line += f" instead of {_time_and_cost(chosen)}"
    more = f"--explain {option.plan.id}" if recommendation.what_ifs else "--what-if"
    yield f"{line} ({more})."
