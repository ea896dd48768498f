"""A team's report as a page: four figures, one chart, what to do, and tables under tabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.core.units import format_duration
from advisor.report import document as doc
from advisor.report import review_tables as tables
from advisor.report.words import sentence
from advisor.report.words.team_report import at_least
from advisor.review.budgets import BudgetState
from advisor.review.period import NOTHING
from advisor.review.savings import Comparison
from advisor.review.spending import Billing
from advisor.spend.showback import change_of

if TYPE_CHECKING:
    from advisor.review.team_review import Move, TeamReview

NEARLY = 0.8
"""Of a limit from which on a month is marked."""


def report_layout(review: TeamReview) -> doc.Layout:
    """The whole page."""
    return doc.Layout(
        tiles=tuple(_tiles(review)),
        top=(budget_chart(review.budgets[0]),),
        title=tables.SAVINGS,
        cards=tuple(
            doc.Card(
                figure=f"saves {doc.CENTS.words(one.period_usd)}",
                text=sentence(tables.saving_finding(one)),
                command=tables.command_of(one),
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
    return f"{'≥ ' if is_least else ''}{doc.CENTS.words(float(review.showback.usd))}"


def subject_of(review: TeamReview) -> str:
    """The subject of a mail: the figure first."""
    change = change_of(review.showback.usd, review.showback.before_usd)
    moved = "" if change is None else f" ({change:+.0%})"
    scope, period = review.scope, review.period
    who = scope.team or ", ".join(sorted(scope.projects or ())) or review.organisation or "everybody"
    return f"{who}: {spent_words(review)} spent{moved}, {period.since:%d %b} to {period.until:%d %b %Y}"


def _tiles(review: TeamReview) -> Iterator[doc.Tile]:
    change = change_of(review.showback.usd, review.showback.before_usd)
    runs = tables.counted(review.spending.all.num_runs, "run")
    moved = "before: not known" if change is None else f"{change:+.0%} against before"
    yield doc.Tile(name="Spent", figure=spent_words(review), note=f"{moved}, {runs}")
    if review.billing is None:
        yield doc.Tile(name="Billed", figure="-", note="no bill was given (--bills FILE)")
    else:
        amortised = doc.CENTS.words(float(review.billing.amortised_usd))
        billed = doc.CENTS.words(float(review.billing.usd))
        yield doc.Tile(name="Billed", figure=billed, note=f"{amortised} amortised, before tax")
    yield _month(review.budgets[0])
    saved = sum(one.period_usd for one in review.savings)
    jobs = f"on {tables.counted(len(review.savings), 'recurring job')}" if review.savings else "nothing found"
    tone = doc.Tone.GOOD if review.savings else doc.Tone.PLAIN
    yield doc.Tile(name="Could be saved", figure=doc.CENTS.words(saved), note=jobs, tone=tone)


def _month(state: BudgetState) -> doc.Tile:
    month, used, forecast = state.month, state.used, state.month.forecast
    spent = doc.CENTS.words(float(month.spent_usd))
    ahead = "" if forecast is None else f", will end at {doc.CENTS.words(forecast.quantile(0.5))}"
    most_usd = state.budget.most_usd
    share = "" if used is None else f"{used:.0%} "
    limit = "no limit" if most_usd is None else f"{share}of {doc.CENTS.words(most_usd)}"
    is_over = state.exceeds(NEARLY) or (state.p_over or 0.0) > 0.5
    return doc.Tile(
        name=f"{month.since:%B}, {tables.whose(state.budget)}",
        figure=f"{'≥ ' if state.num_unknown else ''}{spent}",
        note=f"{limit}{ahead}",
        share=used,
        tone=doc.Tone.BAD if is_over else doc.Tone.PLAIN,
    )


def _tabs(review: TeamReview) -> Iterator[tuple[str, tuple[doc.Block, ...]]]:
    budgets: tuple[doc.Block, ...] = (
        tables.budget_table(review.budgets),
        *map(budget_chart, review.budgets[1:]),
    )
    yield "Summary", (in_short(review), *budgets)
    yield "Who spent it", tuple(tables.showback_tables(review.showback))
    yield "Leaks", tuple(_leaks(review))
    if review.runs:
        yield "Runs", (weeks_chart(review), *tables.spending_tables(review))
    if review.billing is not None and review.billing.charges:
        bills = (tables.billing_table(review.billing),)
        yield (
            "Bills",
            (*bills, tables.commitment_table(review.billing)) if review.billing.commitments else bills,
        )
    if review.accuracy.time is not None:
        chart = accuracy_chart(review.accuracy.comparisons)
        yield "Predictions", (chart, tables.accuracy_table(review))
    if review.moves.moves:
        charts = price_charts(review.moves.moves, review.period.until.timestamp())
        yield "Prices", (*charts, tables.price_table(review.moves.moves))
    if review.unknown:
        yield "Not known", (tables.sentence_table("Not known", map(sentence, review.unknown)),)


def _leaks(review: TeamReview) -> Iterator[doc.Block]:
    if review.leaks:
        yield tables.sentence_table("Where money leaks", map(sentence, review.leaks))
    if review.showback.jumps:
        yield tables.sentence_table(
            "Unusual days", map(sentence, map(tables.jump_finding, review.showback.jumps))
        )
    if review.violations:
        yield tables.violation_table(review.violations)


def in_short(review: TeamReview) -> doc.Table:
    """The figures that a reader looks for first, one a row."""
    rows = tuple(doc.Row(cells) for cells in _in_short(review))
    return doc.Table(columns=doc.columns("In short", "Figure", "And"), rows=rows, caption="In short")


def _in_short(review: TeamReview) -> Iterator[tuple[str, str, str]]:
    spent, planned = review.spending.all, sum(entry.cost_usd.p50 for entry in review.recommendations)
    unknown = f", {spent.num_unknown:,} of unknown cost" if spent.num_unknown else ""
    cost = at_least(doc.CENTS.words(float(spent.usd)), spent.num_unknown, of=spent.num_runs)
    showback = review.showback
    if review.billing is not None:
        whole = "bills and runs, each dollar once"
        yield "Spent", doc.CENTS.words(float(showback.usd)), f"{whole}{_change(review)}"
        yield "Runs", cost, f"{tables.counted(spent.num_runs, 'run')}{unknown}"
    else:
        yield "Spent", cost, f"{tables.counted(spent.num_runs, 'run')}{unknown}{_change(review)}"
    if showback.unallocated_usd:
        share = f" ({showback.unallocated_usd / showback.usd:.0%})" if showback.usd > 0 else ""
        yield "Unallocated", doc.CENTS.words(float(showback.unallocated_usd)), f"names no project{share}"
    recommended = tables.counted(len(review.recommendations), "recommendation")
    yield "Recommended", doc.CENTS.words(planned), f"{recommended}, at p50"
    if review.billing is not None:
        charges = tables.counted(len(review.billing.charges), "charge")
        amortised = doc.CENTS.words(float(review.billing.amortised_usd))
        yield (
            "Billed",
            doc.CENTS.words(float(review.billing.usd)),
            f"{charges}, before tax; {amortised} amortised",
        )
        if review.billing.tax_usd or review.billing.unreadable or review.billing.other_currencies:
            yield (
                "Not included",
                doc.CENTS.words(float(review.billing.left_out_usd)),
                _left_out(review.billing),
            )
    for state in review.budgets:
        yield _month_words(state)
    if review.savings:
        saved = sum(one.period_usd for one in review.savings)
        jobs = tables.counted(len(review.savings), "recurring job")
        yield "Could have been saved", doc.CENTS.words(saved), f"on {jobs}"
    for name, record in (("time", review.accuracy.time), ("cost", review.accuracy.cost)):
        if record is not None:
            expected = f"{record.expected_within_p90:,.1f} expected"
            held = f"{record.num_within_p90:,} of {record.num:,}"
            yield f"Within the predicted p90 of {name}", held, expected


def _change(review: TeamReview) -> str:
    """Against the time before, where that is known."""
    change = change_of(review.showback.usd, review.showback.before_usd)
    days = f"the {review.period.days:,.0f} days before" if review.period.days != 1 else "the day before"
    return "" if change is None else f"; {change:+.0%} against {days}"


def _left_out(billing: Billing) -> str:
    """What the sum of what is left out is made of, and what could not be added to it."""
    parts = [f"{doc.CENTS.words(float(billing.tax_usd))} of tax"] if billing.tax_usd else []
    if billing.unreadable:
        unknown = sum(fault.usd is None for fault in billing.unreadable)
        rows = tables.counted(len(billing.unreadable), "row")
        usd = doc.CENTS.words(float(billing.unreadable_usd))
        parts.append(
            f"{usd} in {rows} that cannot be read{f' (amount of {unknown:,} unknown)' if unknown else ''}"
        )
    parts += [f"besides {amount:,.2f} {name}" for name, (amount, _) in billing.other_currencies.items()]
    return ", ".join(parts)


def _month_words(state: BudgetState) -> tuple[str, str, str]:
    budget, month = state.budget, state.month
    limit = "" if budget.most_usd is None else f" of {doc.CENTS.words(budget.most_usd)}"
    spent = f"{'at least ' if state.num_unknown else ''}{doc.CENTS.words(float(month.spent_usd))}{limit}"
    name = f"{month.since:%B}, {tables.whose(budget)}"
    if month.forecast is None:
        return name, spent, "how it ends is not known"
    low, middle, high = (doc.CENTS.words(month.forecast.quantile(share)) for share in (0.1, 0.5, 0.9))
    odds = "" if state.p_over is None else f"; {state.p_over:.0%} probability of exceeding it"
    return name, spent, f"will end at {middle} ({low} to {high}){odds}"


# --- Its charts ----------------------------------------------------------------------------------------


MOST_CURVES = 4
MOST_POINTS = 150
"""Runs of a chart: more cannot be told apart, and make the page slow."""


def weeks_chart(review: TeamReview) -> doc.Chart:
    """What runs cost, and on it what was spent beyond them, week by week."""
    weeks = review.spending.by_week
    names = tuple(week.name for week in weeks)
    runs = tuple(
        (float(place), usd) for place, usd in enumerate(tables.in_cents([week.usd for week in weeks]))
    )
    series: tuple[doc.Series, ...] = (doc.Series("cost of runs", runs),)
    if review.billing is not None:
        # What no run explains stands on what they cost, so that the whole bar is what was spent.
        gaps = [max(0.0, float((week.spent_usd or NOTHING) - week.usd)) for week in weeks]
        rest = tuple((float(place), gap) for place, gap in enumerate(gaps))
        series = (*series, doc.Series("billed beyond runs", rest, tone=doc.Tone.DOUBTFUL))
    return doc.Chart(
        x=doc.Axis(doc.DAY, title="week of"),
        y=doc.Axis(doc.USD, title="USD"),
        series=series,
        bars=names,
        title="Spending by week",
    )


def budget_chart(state: BudgetState) -> doc.Chart:
    """What was spent of a month so far, its limit, and the forecast as a band."""
    month, most_usd = state.month, state.budget.most_usd
    spent = ((month.since.timestamp(), 0.0), *((at.timestamp(), float(usd)) for at, usd in month.daily))
    series = [doc.Series("spent", tuple(spent), stops=bool(month.band))]
    if month.band:
        today = float(month.spent_usd)
        path = [(month.now, (today, today, today)), *month.band]
        ahead = tuple((at.timestamp(), p50) for at, (_, p50, _) in path)
        ranges = tuple(doc.Detail(y_range=(p10, p90)) for _, (p10, _, p90) in path)
        series.append(doc.Series("forecast, p10 to p90", ahead, details=ranges, is_dashed=True))
    guides: tuple[doc.Series, ...] = ()
    if most_usd is not None:
        ends = ((month.since.timestamp(), most_usd), (month.until.timestamp(), most_usd))
        guides = (doc.Series(f"limit {doc.CENTS.words(most_usd)}", ends, tone=doc.Tone.BAD),)
    return doc.Chart(
        x=doc.Axis(doc.DAY, title="day"),
        y=doc.Axis(doc.USD, title="USD since the first of the month"),
        series=tuple(series),
        until=month.until.timestamp() if month.band else month.now.timestamp(),
        guides=guides,
        title=f"{month.since:%B %Y}, {tables.whose(state.budget)}",
    )


def accuracy_chart(comparisons: Sequence[Comparison]) -> doc.Chart:
    """Predicted against actual time; on the line both are equal."""
    newest = comparisons[-MOST_POINTS:]
    by_gpu: dict[str, list[Comparison]] = {}
    for one in newest:
        by_gpu.setdefault(one.run.gpu, []).append(one)
    series = tuple(
        doc.Series(
            gpu,
            tuple((one.predicted_s.p50, one.actual_s) for one in group),
            details=tuple(map(_comparison_detail, group)),
        )
        for gpu, group in by_gpu.items()
    )
    times = [time for one in newest for time in (one.predicted_s.p50, one.actual_s)]
    diagonal = doc.Series(
        "as predicted", ((min(times), min(times)), (max(times), max(times))), tone=doc.Tone.FAINT
    )
    return doc.Chart(
        x=doc.Axis(doc.DURATION, title="predicted"),
        y=doc.Axis(doc.DURATION, title="actual"),
        series=series,
        is_log=True,
        guides=(diagonal,),
        title="Predicted and actual time (bars: p50 to p90)",
        note=f"the newest {len(newest):,} of {len(comparisons):,} runs"
        if len(newest) < len(comparisons)
        else "",
    )


def _comparison_detail(one: Comparison) -> doc.Detail:
    times = f"{format_duration(one.actual_s)}, predicted {format_duration(one.predicted_s.p50)}"
    return doc.Detail(
        label=f"{one.run.script}\n{one.run.num_gpus} x {one.run.gpu}\n{times}",
        x_range=(one.predicted_s.p50, one.predicted_s.p90),
    )


def price_charts(moves: Sequence[Move], until: float) -> Iterator[doc.Chart]:
    """Prices over the period, a chart a GPU, spot prices with the band of each step."""
    by_gpu: dict[str, list[Move]] = {}
    for move in moves:
        by_gpu.setdefault(move.gpu, []).append(move)
    for gpu, group in by_gpu.items():
        left_out = len(group) - MOST_CURVES
        yield doc.Chart(
            x=doc.Axis(doc.DAY, title="day"),
            y=doc.Axis(doc.USD_PER_H, title="USD per hour"),
            series=tuple(map(_curve, group[:MOST_CURVES])),
            until=until,
            title=f"Prices of {gpu} (bands: p10 to p90)",
            note=f"{left_out} more are in the table" if left_out > 0 else "",
        )


def _curve(move: Move) -> doc.Series:
    series = move.series
    name = f"{series.provider} {series.instance_type} {series.zone or series.region} {series.market}"
    return doc.Series(
        name,
        tuple((step.since.timestamp(), step.usd_per_h.p50) for step in move.steps),
        details=tuple(doc.Detail(y_range=(step.usd_per_h.p10, step.usd_per_h.p90)) for step in move.steps),
    )
