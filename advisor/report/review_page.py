"""A team's report as a page: four figures, one chart, what to do, and tables under tabs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.report.document import CENTS, Block, Card, Layout, Tile, Tone
from advisor.report.review_tables import (
    SAVINGS,
    accuracy_table,
    billing_table,
    budget_table,
    command_of,
    commitment_table,
    counted,
    jump_finding,
    price_table,
    saving_finding,
    sentence_table,
    showback_tables,
    spending_tables,
    violation_table,
    whose,
)
from advisor.report.words import sentence
from advisor.spend.showback import change_of

if TYPE_CHECKING:
    from advisor.review.budgets import BudgetState
    from advisor.review.team_review import TeamReview

NEARLY = 0.8
"""Of a limit from which on a month is marked."""


def report_layout(review: TeamReview) -> Layout:
    """The whole page."""
    from advisor.report.review import budget_chart

    return Layout(
        tiles=tuple(_tiles(review)),
        top=(budget_chart(review.budgets[0]),),
        title=SAVINGS,
        cards=tuple(
            Card(
                figure=f"saves {CENTS.words(one.period_usd)}",
                text=sentence(saving_finding(one)),
                command=command_of(one),
            )
            for one in review.savings
        ),
        tabs=tuple((name, blocks) for name, blocks in _tabs(review) if blocks),
    )


def spent_words(review: TeamReview) -> str:
    """What was spent, as everybody reads it first."""
    lost = review.spending.all
    if review.billing is None and lost.is_unknown:
        return "unknown"
    is_least = review.billing is None and lost.num_unknown
    return f"{'≥ ' if is_least else ''}{CENTS.words(float(review.showback.usd))}"


def subject_of(review: TeamReview) -> str:
    """The subject of a mail: the figure first."""
    change = change_of(review.showback.usd, review.showback.before_usd)
    moved = "" if change is None else f" ({change:+.0%})"
    scope, period = review.scope, review.period
    who = scope.team or ", ".join(sorted(scope.projects or ())) or review.organisation or "everybody"
    return f"{who}: {spent_words(review)} spent{moved}, {period.since:%d %b} to {period.until:%d %b %Y}"


def _tiles(review: TeamReview) -> Iterator[Tile]:
    change = change_of(review.showback.usd, review.showback.before_usd)
    runs = counted(review.spending.all.num_runs, "run")
    moved = "before: not known" if change is None else f"{change:+.0%} against before"
    yield Tile(name="Spent", figure=spent_words(review), note=f"{moved}, {runs}")
    if review.billing is None:
        yield Tile(name="Billed", figure="-", note="no bill was given (--bills FILE)")
    else:
        amortised = CENTS.words(float(review.billing.amortised_usd))
        billed = CENTS.words(float(review.billing.usd))
        yield Tile(name="Billed", figure=billed, note=f"{amortised} amortised, before tax")
    yield _month(review.budgets[0])
    saved = sum(one.period_usd for one in review.savings)
    jobs = f"on {counted(len(review.savings), 'recurring job')}" if review.savings else "nothing found"
    tone = Tone.GOOD if review.savings else Tone.PLAIN
    yield Tile(name="Could be saved", figure=CENTS.words(saved), note=jobs, tone=tone)


def _month(state: BudgetState) -> Tile:
    month, used, forecast = state.month, state.used, state.month.forecast
    spent = CENTS.words(float(month.spent_usd))
    ahead = "" if forecast is None else f", will end at {CENTS.words(forecast.quantile(0.5))}"
    limit = "no limit" if used is None else f"{used:.0%} of {CENTS.words(state.budget.most_usd or 0.0)}"
    is_over = used is not None and (used >= NEARLY or (state.p_over or 0.0) > 0.5)
    return Tile(
        name=f"{month.since:%B}, {whose(state.budget)}",
        figure=f"{'≥ ' if state.num_unknown else ''}{spent}",
        note=f"{limit}{ahead}",
        share=used,
        tone=Tone.BAD if is_over else Tone.PLAIN,
    )


def _tabs(review: TeamReview) -> Iterator[tuple[str, tuple[Block, ...]]]:
    from advisor.report import review as report

    budgets: tuple[Block, ...] = (budget_table(review.budgets), *map(report.budget_chart, review.budgets[1:]))
    yield "Summary", (report.in_short(review), *budgets)
    yield "Who spent it", tuple(showback_tables(review.showback))
    yield "Leaks", tuple(_leaks(review))
    if review.runs:
        yield "Runs", (report.weeks_chart(review), *spending_tables(review.spending))
    if review.billing is not None and review.billing.charges:
        bills = (billing_table(review.billing),)
        yield "Bills", (*bills, commitment_table(review.billing)) if review.billing.commitments else bills
    if review.accuracy.time is not None:
        chart = report.accuracy_chart(review.accuracy.comparisons)
        yield "Predictions", (chart, accuracy_table(review))
    if review.moves.moves:
        charts = report.price_charts(review.moves.moves, review.period.until.timestamp())
        yield "Prices", (*charts, price_table(review.moves.moves))
    if review.unknown:
        yield "Not known", (sentence_table("Not known", map(sentence, review.unknown)),)


def _leaks(review: TeamReview) -> Iterator[Block]:
    if review.leaks:
        yield sentence_table("Where money leaks", map(sentence, review.leaks))
    if review.showback.jumps:
        yield sentence_table("Unusual days", map(sentence, map(jump_finding, review.showback.jumps)))
    if review.violations:
        yield violation_table(review.violations)
