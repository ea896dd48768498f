"""A team's report as a document: JSON, blocks for a terminal, and a page of figures, charts and tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

from advisor.core.iterables import grouped
from advisor.core.units import format_duration
from advisor.report import document as doc
from advisor.report import review_tables as tables
from advisor.report.document import BLANK, Block, Document, Late, Lines, Section, Table, facts_of
from advisor.report.words import all_told, finding_json, sentence, warnings_json
from advisor.report.words.team_report import at_least, counted
from advisor.review.budgets import NOTHING, BudgetState
from advisor.review.savings import Comparison, PredictionRecord, Saving
from advisor.review.spending import Billing, Share
from advisor.review.who_spent import Showback, change_of

if TYPE_CHECKING:
    from advisor.review.team_review import PriceMove, TeamReview


def review_json(review: TeamReview) -> Mapping[str, object]:
    """All facts; money as numbers of US dollars before tax, parts of which add up to their whole."""
    spending, scope = review.spending, review.scope
    return {
        "since": review.period.since.isoformat(),
        "until": review.period.until.isoformat(),
        "team": scope.team,
        "projects": None if scope.projects is None else sorted(scope.projects),
        "num_recommendations": len(review.recommendations),
        "recommended_usd": sum(entry.cost_usd.p50 for entry in review.recommendations),
        "spending": {
            **_share(spending.all),
            **{
                name: [{"name": share.name, **_share(share)} for share in getattr(spending, name)]
                for name in ("by_project", "by_gpu", "by_market", "by_provider", "by_user", "by_week")
            },
        },
        "billing": None if review.billing is None else _billing(review.billing),
        "accuracy": {
            "time": _record(review.accuracy.time),
            "cost": _record(review.accuracy.cost),
            "time_by_gpu": {gpu: _record(record) for gpu, record in review.accuracy.by_gpu.items()},
            "num_elsewhere": review.accuracy.num_elsewhere,
            "runs": list(map(_comparison, review.accuracy.comparisons)),
        },
        "budgets": list(map(_budget, review.budgets)),
        "showback": _showback(review.showback),
        "violations": [{"run": one.run.id, "rule": one.rule} for one in review.violations],
        "prices": list(map(_move, review.moves.moves)),
        "savings": [_saving(one) for one in review.savings],
        **all_told("leaks", review.leaks),
        **warnings_json(review.unknown),
    }


def _share(share: Share) -> dict[str, object]:
    usd = None if share.is_unknown else float(share.usd)
    return {"usd": usd, **facts_of(share, "num_runs num_unknown gpu_h spent_usd")}


def _billing(billing: Billing) -> dict[str, object]:
    machine = "provider instance_type billed_usd amortised_usd explained_usd idle_usd num_runs"
    commitment = "provider name utilisation used_usd unused_usd"
    return {
        **facts_of(billing, "usd amortised_usd left_out_usd coverage"),
        "commitments": _facts(billing.commitments, commitment),
        **{
            name: _facts(getattr(billing, name), "name num_charges usd amortised_usd")
            for name in ("by_provider", "by_project", "by_week", "by_service")
        },
        "machines": _facts(billing.machines, machine),
        **facts_of(billing, "tax_usd untagged_usd"),
        "other_currencies": {name: float(amount) for name, (amount, _) in billing.other_currencies.items()},
    }


def _facts(values: Iterable[object], names: str) -> list[dict[str, object]]:
    return [facts_of(one, names) for one in values]


def _showback(showback: Showback) -> dict[str, object]:
    found = list(map(tables.jump_finding, showback.jumps))
    unit_cost = "project script num_runs per_run_usd per_epoch_usd per_million_tokens_usd"
    return {
        **facts_of(showback, "usd before_usd unallocated_usd"),
        "by_team": _facts(showback.by_team, "name usd shared_usd before_usd"),
        "by_project": _facts(showback.by_project, "name usd shared_usd before_usd"),
        "by_tag": {
            tag: {value: float(usd) for value, usd in by_value.items()}
            for tag, by_value in showback.by_tag.items()
        },
        "unit_costs": _facts(showback.unit_costs, unit_cost),
        **all_told("unusual", found),
    }


def _record(record: PredictionRecord | None) -> dict[str, object] | None:
    return None if record is None else {**asdict(record), "expected_within_p90": record.expected_within_p90}


def _comparison(one: Comparison) -> dict[str, object]:
    return {
        "run": one.run.id,
        "recommendation": one.run.recommendation_id,
        **facts_of(one.run, "gpu num_gpus"),
        **facts_of(one, "predicted_s actual_s predicted_usd actual_usd"),
    }


def _budget(state: BudgetState) -> dict[str, object]:
    budget, month = state.budget, state.month
    ends = month.forecast
    return {
        "rule": budget.rule or None,
        **facts_of(budget, "owner name"),
        "limit_usd": budget.most_usd,
        "month": f"{month.since:%Y-%m}",
        "spent_usd": float(month.spent_usd),
        "num_unknown": state.num_unknown,
        "forecast_usd": ends and {f"p{share}": ends.quantile(share / 100) for share in (10, 50, 90)},
        **facts_of(state, "used p_over"),
    }


def _move(move: PriceMove) -> dict[str, object]:
    series = move.series
    return {
        "gpu": move.gpu,
        **facts_of(series, "provider instance_type region zone market source"),
        **facts_of(move, "first_usd_per_h last_usd_per_h"),
        **facts_of(series, "lowest_usd_per_h highest_usd_per_h change"),
        **facts_of(move, "usd_per_h is_used"),
    }


def _saving(saving: Saving) -> dict[str, object]:
    one = tables.saving_finding(saving)
    return {
        **facts_of(saving.job, "project script"),
        "num_runs": len(saving.job.runs),
        "usd_per_run": saving.job.usd,
        "plan": saving.plan.id,
        **facts_of(saving, "usd time_s deadline_s share period_usd"),
        "command": tables.command_of(saving),
        "words": sentence(one),
        "finding": finding_json(one),
    }


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
    title = tables.heading(review.scope, review.period, review.organisation)
    return Document(
        facts=Late(lambda: {"is_first": False, **review_json(review)}),
        blocks=(Lines((title,)), *_titled(chain.from_iterable(tables_of(review).values()), review)),
        sheet=lambda: tables.run_table(review),
        title=title,
        subject=subject_of(review),
        page=lambda: tuple(_page(review)),
        layout=lambda: report_layout(review),
        is_letter=True,
        # Forecasts and time-weighted prices move with each minute.
        of_moment=frozenset({"since", "until", "budgets", "prices"}),
    )


def _titled(blocks: Iterable[Table], review: TeamReview) -> Iterator[Block]:
    """Tables below their captions, which a terminal does not show; sentences read better as a list."""
    for table in blocks:
        yield BLANK
        if table.caption == tables.SAVINGS:
            for number, saving in enumerate(review.savings):
                yield Section("" if number else tables.SAVINGS, (sentence(tables.saving_finding(saving)),))
                yield Lines((f"    {tables.command_of(saving)}",))
        elif len(table.columns) == 1:
            yield Section(table.caption, tuple(str(row.cells[0]) for row in table.rows))
        else:
            yield Lines((table.caption,))
            yield table


def _page(review: TeamReview) -> Iterator[Block]:
    """The same tables, each below the chart of it."""
    for part, shown in tables_of(review).items():
        yield from charts_of(review, part) if shown else ()
        yield from shown


# --- The page ---------------------------------------------------------------------------------------


NEARLY = 0.8
"""Of a limit from which on a month is marked."""


def report_layout(review: TeamReview) -> doc.PageLayout:
    """The whole page."""
    return doc.PageLayout(
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
    runs = counted(review.spending.all.num_runs)
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
    jobs = f"on {counted(len(review.savings), 'recurring job')}" if review.savings else "nothing found"
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


def tables_of(review: TeamReview) -> dict[str, tuple[doc.Table, ...]]:
    """The tables of each part, in the order of the report; none where a part has nothing to show."""
    billing, showback = review.billing, review.showback
    is_billed = billing is not None and bool(billing.charges)
    return {
        "short": (in_short(review),),
        "savings": (tables.saving_table(review.savings),) if review.savings else (),
        "budgets": (tables.budget_table(review.budgets),),
        "leaks": tables.finding_tables("Where money leaks", review.leaks),
        "violations": (tables.violation_table(review.violations),) if review.violations else (),
        "days": tables.finding_tables("Unusual days", list(map(tables.jump_finding, showback.jumps))),
        "who": tuple(tables.showback_tables(showback)),
        "Runs": tuple(tables.spending_tables(review)) if review.runs else (),
        "Bills": tuple(tables.billing_tables(billing)) if billing is not None and is_billed else (),
        "Predictions": () if review.accuracy.time is None else (tables.accuracy_table(review),),
        "Prices": (tables.price_table(review.moves.moves),) if review.moves.moves else (),
        "Not known": tables.finding_tables("Not known", review.unknown),
    }


def charts_of(review: TeamReview, part: str) -> tuple[doc.Chart, ...]:
    """What is drawn above the tables of a part."""
    match part:
        case "budgets":
            return tuple(map(budget_chart, review.budgets))
        case "Runs":
            return (weeks_chart(review),)
        case "Predictions":
            return (accuracy_chart(review.accuracy.comparisons),)
        case "Prices":
            return tuple(price_charts(review.moves.moves, review.period.until.timestamp()))
        case _:
            return ()


def _tabs(review: TeamReview) -> Iterator[tuple[str, tuple[doc.Block, ...]]]:
    of = tables_of(review)
    # That of the first budget is above the tabs.
    yield "Summary", (*of["short"], *of["budgets"], *charts_of(review, "budgets")[1:])
    yield "Who spent it", of["who"]
    yield "Leaks", (*of["leaks"], *of["days"], *of["violations"])
    for part in ("Runs", "Bills", "Predictions", "Prices", "Not known"):
        yield part, (*charts_of(review, part), *of[part]) if of[part] else ()


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
        yield "Runs", cost, f"{counted(spent.num_runs)}{unknown}"
    else:
        yield "Spent", cost, f"{counted(spent.num_runs)}{unknown}{_change(review)}"
    if showback.unallocated_usd:
        share = f" ({showback.unallocated_usd / showback.usd:.0%})" if showback.usd > 0 else ""
        yield "Unallocated", doc.CENTS.words(float(showback.unallocated_usd)), f"names no project{share}"
    recommended = counted(len(review.recommendations), "recommendation")
    yield "Recommended", doc.CENTS.words(planned), f"{recommended}, at p50"
    if review.billing is not None:
        yield from _billed_in_short(review.billing)
    for state in review.budgets:
        yield _month_words(state)
    if review.savings:
        saved = sum(one.period_usd for one in review.savings)
        jobs = counted(len(review.savings), "recurring job")
        yield "Could have been saved", doc.CENTS.words(saved), f"on {jobs}"
    for name, record in (("time", review.accuracy.time), ("cost", review.accuracy.cost)):
        if record is not None:
            expected = f"{record.expected_within_p90:,.1f} expected"
            held = f"{record.num_within_p90:,} of {record.num:,}"
            yield f"Within the predicted p90 of {name}", held, expected


def _billed_in_short(billing: Billing) -> Iterator[tuple[str, str, str]]:
    usd, amortised, left_out = (
        doc.CENTS.words(float(one)) for one in (billing.usd, billing.amortised_usd, billing.left_out_usd)
    )
    yield "Billed", usd, f"{counted(len(billing.charges), 'charge')}, before tax; {amortised} amortised"
    if billing.tax_usd or billing.unreadable or billing.other_currencies:
        yield "Not included", left_out, _left_out(billing)


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
        rows = counted(len(billing.unreadable), "row")
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
"""Runs of a chart: more cannot be distinguished, and make the page slow."""


def weeks_chart(review: TeamReview) -> doc.Chart:
    """What runs cost, and on it what was spent beyond them, week by week."""
    weeks = review.spending.by_week
    names = tuple(week.name for week in weeks)
    runs = tuple(enumerate(tables.in_cents([week.usd for week in weeks])))
    series: tuple[doc.Series, ...] = (doc.Series("cost of runs", runs),)
    if review.billing is not None:
        # What no run explains stands on what they cost, so that the whole bar is what was spent.
        gaps = [max(0.0, float((week.spent_usd or NOTHING) - week.usd)) for week in weeks]
        rest = doc.Series("billed beyond runs", tuple(enumerate(gaps)), tone=doc.Tone.DOUBTFUL)
        series = (*series, rest)
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
    by_gpu = grouped(newest, lambda one: one.run.gpu)
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


def price_charts(moves: Sequence[PriceMove], until: float) -> Iterator[doc.Chart]:
    """Prices over the period, a chart a GPU, spot prices with the band of each step."""
    by_gpu = grouped(moves, lambda move: move.gpu)
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


def _curve(move: PriceMove) -> doc.Series:
    series = move.series
    name = f"{series.provider} {series.instance_type} {series.zone or series.region} {series.market}"
    return doc.Series(
        name,
        tuple((step.since.timestamp(), step.usd_per_h.p50) for step in move.steps),
        details=tuple(doc.Detail(y_range=(step.usd_per_h.p10, step.usd_per_h.p90)) for step in move.steps),
    )
