"""A team's report as a document: tables for terminals and Markdown, charts beside them for a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.report.cells import CENTS
from advisor.report.document import BLANK, Block, Document, Late, Lines, Row, Section, Table, columns
from advisor.report.review_charts import accuracy_chart, budget_chart, price_charts, weeks_chart
from advisor.report.review_json import review_json
from advisor.report.review_tables import (
    SAVINGS,
    accuracy_table,
    billing_table,
    budget_table,
    price_table,
    run_table,
    saving_table,
    sentence_table,
    spending_tables,
    violation_table,
)
from advisor.report.review_words import command_of, counted, heading, saving_finding
from advisor.report.words import sentence
from advisor.report.words.team_report import at_least

if TYPE_CHECKING:
    from advisor.review.budgets import BudgetState
    from advisor.review.team_review import TeamReview

FIRST_STEPS = (
    "Nothing is recorded yet, so there is nothing to report. A first report needs three steps:",
    "  advisor recommend train.py --epochs 90 --record    keeps what was planned",
    "  advisor run -- python train.py                     keeps what really happened, and what it cost",
    "  advisor report --bills FILE                        adds what your cloud billed (docs/report.md)",
)


def first_document() -> Document:
    """What to do where nothing was ever recorded."""
    facts: dict[str, object] = {"is_first": True, "next_steps": list(FIRST_STEPS), "warnings": []}
    return Document(facts=facts, blocks=(Lines(FIRST_STEPS),), title="Report")


def review_document(review: TeamReview) -> Document:
    """All of a report; what has nothing to show is left out."""
    title = heading(review.scope, review.period)
    return Document(
        facts=Late(lambda: {"is_first": False, **review_json(review)}),
        blocks=(Lines((title,)), *_titled(_tables(review), review)),
        sheet=lambda: run_table(review),
        title=title,
        page=lambda: tuple(_page(review)),
        is_letter=True,
        # Forecasts and time-weighted prices move with each minute.
        of_moment=frozenset({"since", "until", "budgets", "prices"}),
    )


def _titled(tables: Iterator[Table], review: TeamReview) -> Iterator[Block]:
    """Tables below their captions, which a terminal does not show; sentences read better as a list."""
    for table in tables:
        yield BLANK
        if table.caption == SAVINGS:
            yield from _savings(review)
        elif len(table.columns) == 1:
            yield Section(table.caption, tuple(str(row.cells[0]) for row in table.rows))
        else:
            yield Lines((table.caption,))
            yield table


def _savings(review: TeamReview) -> Iterator[Block]:
    """Each saving with its command on a line of its own, for copying."""
    for number, saving in enumerate(review.savings):
        yield Section("" if number else SAVINGS, (sentence(saving_finding(saving)),))
        yield Lines((f"    {command_of(saving)}",))


def _tables(review: TeamReview) -> Iterator[Table]:
    yield in_short(review)
    if review.savings:
        yield saving_table(review.savings)
    yield budget_table(review.budgets)
    yield from _of_leaks(review)
    if review.runs:
        yield from spending_tables(review.spending)
    if review.billing is not None and review.billing.charges:
        yield billing_table(review.billing)
    if review.accuracy.time is not None:
        yield accuracy_table(review)
    if review.moves.moves:
        yield price_table(review.moves.moves)
    if review.unknown:
        yield sentence_table("Not known", map(sentence, review.unknown))


def _of_leaks(review: TeamReview) -> Iterator[Table]:
    if review.leaks:
        yield sentence_table("Where money leaks", map(sentence, review.leaks))
    if review.violations:
        yield violation_table(review.violations)


def _page(review: TeamReview) -> Iterator[Block]:
    """The same tables, each below the chart of it."""
    tables = {table.caption: table for table in _tables(review)}
    for caption, table in tables.items():
        if caption == "Spending by week":
            yield weeks_chart(review)
        elif caption.startswith("The month"):
            yield from map(budget_chart, review.budgets)
        elif caption == "Predicted and actual":
            yield accuracy_chart(review.accuracy.comparisons)
        elif caption.startswith("Prices"):
            yield from price_charts(review.moves.moves, review.period.until.timestamp())
        yield table


def in_short(review: TeamReview) -> Table:
    """The figures that a reader looks for first, one a row."""
    rows = tuple(Row(cells) for cells in _in_short(review))
    return Table(columns=columns("In short", "Figure", "And"), rows=rows, caption="In short")


def _in_short(review: TeamReview) -> Iterator[tuple[str, str, str]]:
    spent, planned = review.spending.all, sum(entry.cost_usd.p50 for entry in review.recommendations)
    unknown = f", {spent.num_unknown:,} of unknown cost" if spent.num_unknown else ""
    cost = at_least(CENTS.words(float(spent.usd)), spent.num_unknown, of=spent.num_runs)
    yield "Spent", cost, f"{counted(spent.num_runs, 'run')}{unknown}"
    recommended = counted(len(review.recommendations), "recommendation")
    yield "Recommended", CENTS.words(planned), f"{recommended}, at p50"
    if review.billing is not None:
        charges = counted(len(review.billing.charges), "charge")
        yield "Billed", CENTS.words(float(review.billing.usd)), f"{charges}, before tax"
    for state in review.budgets:
        yield _month(state)
    if review.savings:
        saved = sum(one.period_usd for one in review.savings)
        jobs = counted(len(review.savings), "recurring job")
        yield "Could have been saved", CENTS.words(saved), f"on {jobs}"
    for name, record in (("time", review.accuracy.time), ("cost", review.accuracy.cost)):
        if record is not None:
            expected = f"{record.expected_within_p90:,.1f} expected"
            held = f"{record.num_within_p90:,} of {record.num:,}"
            yield f"Within the predicted p90 of {name}", held, expected


def _month(state: BudgetState) -> tuple[str, str, str]:
    budget, month = state.budget, state.month
    limit = "" if budget.most_usd is None else f" of {CENTS.words(budget.most_usd)}"
    spent = f"{'at least ' if state.num_unknown else ''}{CENTS.words(float(month.spent_usd))}{limit}"
    name = f"{month.since:%B}, {budget.owner}"
    if month.forecast is None:
        return name, spent, "how it ends is not known"
    low, middle, high = (CENTS.words(month.forecast.quantile(share)) for share in (0.1, 0.5, 0.9))
    odds = "" if state.p_over is None else f"; {state.p_over:.0%} odds to exceed it"
    return name, spent, f"will end at {middle} ({low} to {high}){odds}"
