"""The table of options: a column is one entry of `OPTION_COLUMNS` for tables, pages, CSV and notebooks."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import partial

from advisor.core.findings.about_options import Alike
from advisor.core.units import format_duration_short, format_usd
from advisor.core.values import Listed, Merit, Option, Recommendation
from advisor.report import document as doc
from advisor.report import option_facts as report_options
from advisor.report.option_facts import status
from advisor.report.prices import rent_text
from advisor.report.words.sentences import named_work
from recommender.ranking.value import Worth, total_usd, worth_for

# Below this many characters all columns side by side would break the names of machines.
WIDE_ABOVE = 150
_TONES = {"recommended": doc.Tone.BEST, "frontier": doc.Tone.GOOD, "": doc.Tone.PLAIN}


class Form(Flag):
    """How much room a table has: all columns, GPUs above their place, the least, or all in one column."""

    WIDE = auto()
    MIDDLE = auto()
    NARROW = auto()
    STACKED = auto()


_NONE = Form(0)
_ALL = Form.WIDE | Form.MIDDLE | Form.NARROW


@dataclass(frozen=True, slots=True)
class PlacedOption:
    """An option and its row."""

    number: int | None
    option: Option
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionColumn:
    """A column of the table of options, and what a spreadsheet has of it."""

    heading: doc.Column | None = None
    """Its name, its kind, and whether it may break; None where only a spreadsheet has it."""
    cell: Callable[[PlacedOption], doc.Cell] = lambda _: None
    forms: Form = _NONE
    """The tables that show it."""
    keys: tuple[str, ...] = ()
    """Names in JSON (docs/json.md) of what CSV has, with a dot for a member: ``time_s.p50``."""
    is_outcome: bool = False
    """Whether it is unknown for plans that `has_figures` refuses."""
    page_place: int = 0
    """On a page, columns come in this order, then in that of the list."""

    def of(self, row: PlacedOption) -> doc.Cell:
        """The cell of a row."""
        return None if self.is_outcome and not report_options.has_figures(row.option) else self.cell(row)


def _machine(row: PlacedOption) -> tuple[str, str]:
    """GPUs above their place: side by side they would leave no room for the rest."""
    option = row.option
    gpus = " ".join([report_options.gpus(option), *report_options.market(option)])
    return gpus, report_options.place(option) + _needs_and_alike(option)


def _in_one(row: PlacedOption) -> tuple[str, ...]:
    """All of an option below each other, where words would have to be broken."""
    option = row.option
    figures = [doc.with_p90(option.time_s, format_duration_short), format_usd(option.cost_usd.p50)]
    texts = (*(figures if report_options.has_figures(option) else []), row.status)
    return (*_machine(row), ", ".join(filter(None, texts)))


def _needs_and_alike(option: Option) -> str:
    """What it needs, and of how many others the row speaks: which, and how far away, is among its notes."""
    needs = f", needs {named_work(option.work)}" if option.work else ""
    facts = next((reason.facts for reason in option.reasons if isinstance(reason, Alike)), None)
    if facts is None:
        return needs
    others = facts["num_of_other_gpus"]
    return f"{needs}, +{facts['num_options']} like it" + (f" ({others} on other GPUs)" if others else "")


OPTION_COLUMNS = (
    OptionColumn(keys=("id",)),
    OptionColumn(
        heading=doc.Column("Status", wraps=False), cell=lambda row: row.status, forms=_ALL, keys=("status",)
    ),
    OptionColumn(
        heading=doc.Column("#", doc.PLAIN, wraps=False),
        cell=lambda row: row.number,
        forms=_ALL | Form.STACKED,
    ),
    OptionColumn(
        heading=doc.Column("Where"),
        cell=lambda row: report_options.where(row.option) + _needs_and_alike(row.option),
        forms=Form.WIDE,
        keys=("tier", "provider", "instance_type", "region", "zone", "market"),
    ),
    OptionColumn(
        heading=doc.Column("GPUs", wraps=False),
        cell=lambda row: report_options.gpus(row.option),
        forms=Form.WIDE,
        keys=("gpu", "num_gpus"),
    ),
    OptionColumn(heading=doc.Column("GPUs, and where"), cell=_machine, forms=Form.MIDDLE | Form.NARROW),
    OptionColumn(
        heading=doc.Column("USD/h, age", wraps=False),
        cell=lambda row: doc.Worded(rent_text(row.option.plan), row.option.plan.usd_per_h),
        forms=Form.WIDE | Form.MIDDLE,
        keys=("usd_per_h", "price_retrieved_at"),
        page_place=2,
    ),
    OptionColumn(
        heading=doc.Column("Step, all GPUs", doc.DURATION, wraps=False),
        cell=lambda row: row.option.estimate.iteration_s.p50,
        forms=Form.WIDE,
        keys=("iteration_s.p50",),
        is_outcome=True,
        page_place=4,
    ),
    OptionColumn(
        heading=doc.Column("Binds", wraps=False),
        cell=lambda row: row.option.estimate.binds,
        forms=Form.WIDE | Form.MIDDLE,
        keys=("binds",),
        is_outcome=True,
        page_place=5,
    ),
    OptionColumn(
        heading=doc.Column("Wait p90", doc.SHORT_DURATION, wraps=False),
        cell=lambda row: None if row.option.wait_s is None else row.option.wait_s.p90,
        forms=Form.WIDE | Form.MIDDLE,
        keys=("wait_s.p50", "wait_s.p90"),
        page_place=3,
    ),
    OptionColumn(
        heading=doc.Column("Time (p90)", doc.SHORT_DURATION, wraps=False),
        cell=lambda row: row.option.time_s,
        forms=_ALL,
        keys=("time_s.p50", "time_s.p90"),
        is_outcome=True,
        page_place=1,
    ),
    OptionColumn(
        heading=doc.Column("Cost (p90)", doc.USD, wraps=False),
        cell=lambda row: row.option.cost_usd,
        forms=Form.WIDE,
        keys=("cost_usd.p50", "cost_usd.p90"),
        is_outcome=True,
        page_place=1,
    ),
    OptionColumn(
        heading=doc.Column("Cost", doc.USD, wraps=False),
        cell=lambda row: row.option.cost_usd.p50,
        forms=Form.MIDDLE | Form.NARROW,
        is_outcome=True,
    ),
    OptionColumn(heading=doc.Column("GPUs, where, time (p90), cost"), cell=_in_one, forms=Form.STACKED),
    OptionColumn(keys=("p_within_budget", "p_within_deadline", "memory_bytes")),
    OptionColumn(keys=("removed_by", "folded_into", "num_nodes")),
    OptionColumn(keys=("work.kinds", "work.hours", "work.usd")),
)


def options_table(recommendation: Recommendation, top: int | None, *, caption: str = "") -> doc.Table:
    """The options worth showing, what is recommended and the frontier first."""
    rows = [
        PlacedOption(number, option, status(option, recommendation))
        for number, option in report_options.selection(recommendation, top)
    ]
    stacked = _in_form(Form.STACKED, rows)
    narrow = replace(_in_form(Form.NARROW, rows), narrow=(stacked,))
    middle = replace(_in_form(Form.MIDDLE, rows), narrow=(narrow,), narrow_below=doc.NARROW)
    wide = _in_form(Form.WIDE, rows)
    return replace(wide, caption=caption, narrow=(middle,), narrow_below=WIDE_ABOVE)


_MERITS = {
    Merit.RECOMMENDED: "recommended",
    Merit.AS_IT_IS: "as it is",
    Merit.WITH_WORK: "with work",
    Merit.CHEAPEST: "cheapest",
    Merit.FASTEST: "fastest",
    Merit.SAFEST: "safest",
    Merit.OWN: "your own",
}
# What the column of work says already of the recommended row.
_OF_WORK = ("as it is", "with work")
_SHORT = (
    doc.Column("Why"),
    doc.Column("#", doc.PLAIN, wraps=False),
    doc.Column("GPUs, and where"),
    doc.Column("To do first"),
)
_TIME = doc.Column("Time (p90)", doc.SHORT_DURATION, wraps=False)
_COST = doc.Column("Cost (p90)", doc.USD, wraps=False)


def short_table(recommendation: Recommendation) -> doc.Table:
    """The rows of one screen, each with the reasons for which it is there."""
    by_id, worth = report_options.numbered(recommendation), worth_for(recommendation.job)
    rows = [
        (row, PlacedOption(_number(row, by_id), row.option, status(row.option, recommendation)))
        for row in recommendation.shortlist
    ]
    row_of = partial(_short_row, worth=worth)
    wide = tuple(row_of(row, p, figures=(p.option.time_s, p.option.cost_usd)) for row, p in rows)
    stacked = tuple(row_of(row, place, figures=(_cost_above_time(place.option),)) for row, place in rows)
    both = doc.Column("Cost, time (p90)", doc.USD, wraps=False)
    total = doc.Column("Total", doc.USD, wraps=False)
    narrow = doc.Table(columns=(*_SHORT, both, total), rows=stacked, keeps_words=False, ends_blank=False)
    wide_columns = (*_SHORT, _TIME, _COST, total)
    return doc.Table(
        columns=wide_columns, rows=wide, narrow=(narrow,), narrow_below=WIDE_ABOVE, ends_blank=False
    )


def _number(row: Listed, by_id: Mapping[str, tuple[int, Option]]) -> int | None:
    """None for another way of a plan than the one that was ranked."""
    number, ranked_option = by_id[row.option.plan.id]
    return number if ranked_option.work == row.option.work else None


def _short_row(row: Listed, place: PlacedOption, *, worth: Worth, figures: tuple[doc.Cell, ...]) -> doc.Row:
    merits = [_MERITS[merit] for merit in row.merits if merit in _MERITS]
    first: tuple[str, ...] = ()
    if Merit.RECOMMENDED in row.merits:
        merits = [merit for merit in merits[1:] if merit not in _OF_WORK]
        first = ("recommended:",) if merits else ("recommended",)
    merits += [] if place.option.feasible else [place.status]
    why = (*first, *([", ".join(merits)] if merits else []))
    machine = _machine(place)[0], report_options.place(place.option)
    total = total_usd(place.option, worth)
    shown: tuple[doc.Cell, ...] = (*figures, total if math.isfinite(total) else None)
    if not report_options.has_figures(place.option):
        shown = (None,) * len(shown)
    cells = (why, place.number, machine, report_options.work_lines(place.option, worth), *shown)
    tone = doc.Tone.PLAIN if place.option.feasible else doc.Tone.FAINT
    return doc.Row(cells, doc.Tone.BEST if Merit.RECOMMENDED in row.merits else tone)


def _cost_above_time(option: Option) -> doc.Cell:
    cost_usd = doc.with_p90(option.cost_usd, format_usd)
    return doc.Worded(cost_usd, option.cost_usd.p50), doc.with_p90(option.time_s, format_duration_short)


def _in_form(form: Form, rows: Sequence[PlacedOption]) -> doc.Table:
    shown = [column for column in OPTION_COLUMNS if form in column.forms]
    return doc.Table(
        columns=tuple(column.heading for column in shown if column.heading),
        rows=tuple(
            doc.Row(tuple(c.of(row) for c in shown), _TONES.get(row.status, doc.Tone.FAINT)) for row in rows
        ),
    )


def page_table(recommendation: Recommendation, top: int | None) -> doc.Table:
    """The same for a page: where it is narrow, time and cost come before what they follow from."""
    places = [column.page_place for column in OPTION_COLUMNS if Form.WIDE in column.forms]
    order = sorted(range(len(places)), key=places.__getitem__)
    return options_table(recommendation, top, caption="Options").in_order(order)


def options_sheet(recommendation: Recommendation, facts: Sequence[Mapping[str, object]]) -> doc.Table:
    """Every option as plain numbers, for spreadsheets: seconds, dollars, bytes."""
    keys = [(key, column.is_outcome) for column in OPTION_COLUMNS for key in column.keys]
    names = doc.columns(*(key.replace(".", "_") for key, _ in keys), kind=doc.PLAIN)
    rows = []
    for option, known in zip(report_options.ranked(recommendation), facts, strict=True):
        values = {**known, "status": status(option, recommendation)}
        is_known = report_options.has_figures(option)
        cells = ("" if is_outcome and not is_known else _plain(values, key) for key, is_outcome in keys)
        rows.append(doc.Row(tuple(cells)))
    return doc.Table(columns=names, rows=tuple(rows))


def _plain(values: Mapping[str, object], key: str) -> str:
    """A fact by its name, or a member of one; of several values each, with a plus between them."""
    name, _, member = key.partition(".")
    value = values[name]
    cell = value[member] if member and isinstance(value, Mapping) else value
    if isinstance(cell, tuple):
        return "+".join(map(str, cell))
    return "" if cell is None else str(cell)
