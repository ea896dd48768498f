"""The charts of a team's report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.core.units import format_duration
from advisor.report.document import CENTS, DAY, DURATION, USD, USD_PER_H, Axis, Chart, Detail, Series, Tone
from advisor.report.review_tables import in_cents, whose
from advisor.review.budgets import BudgetState
from advisor.review.period import NOTHING
from advisor.review.savings import Comparison

if TYPE_CHECKING:
    from advisor.review.team_review import Move, TeamReview

MOST_CURVES = 4
MOST_POINTS = 150
"""Runs of a chart: more cannot be told apart, and make the page slow."""


def weeks_chart(review: TeamReview) -> Chart:
    """What runs cost, and on it what was spent beyond them, week by week."""
    weeks = review.spending.by_week
    names = tuple(week.name for week in weeks)
    runs = tuple((float(place), usd) for place, usd in enumerate(in_cents([week.usd for week in weeks])))
    series: tuple[Series, ...] = (Series("cost of runs", runs),)
    if review.billing is not None:
        # What no run explains stands on what they cost, so that the whole bar is what was spent.
        gaps = [max(0.0, float((week.spent_usd or NOTHING) - week.usd)) for week in weeks]
        rest = tuple((float(place), gap) for place, gap in enumerate(gaps))
        series = (*series, Series("billed beyond runs", rest, tone=Tone.DOUBTFUL))
    return Chart(
        x=Axis(DAY, title="week of"),
        y=Axis(USD, title="USD"),
        series=series,
        bars=names,
        title="Spending by week",
    )


def budget_chart(state: BudgetState) -> Chart:
    """What was spent of a month so far, its limit, and the forecast as a band."""
    month, most_usd = state.month, state.budget.most_usd
    spent = ((month.since.timestamp(), 0.0), *((at.timestamp(), float(usd)) for at, usd in month.daily))
    series = [Series("spent", tuple(spent), stops=bool(month.band))]
    if month.band:
        today = float(month.spent_usd)
        path = [(month.now, (today, today, today)), *month.band]
        ahead = tuple((at.timestamp(), p50) for at, (_, p50, _) in path)
        ranges = tuple(Detail(y_range=(p10, p90)) for _, (p10, _, p90) in path)
        series.append(Series("forecast, p10 to p90", ahead, details=ranges, is_dashed=True))
    guides: tuple[Series, ...] = ()
    if most_usd is not None:
        ends = ((month.since.timestamp(), most_usd), (month.until.timestamp(), most_usd))
        guides = (Series(f"limit {CENTS.words(most_usd)}", ends, tone=Tone.BAD),)
    return Chart(
        x=Axis(DAY, title="day"),
        y=Axis(USD, title="USD since the first of the month"),
        series=tuple(series),
        until=month.until.timestamp() if month.band else month.now.timestamp(),
        guides=guides,
        title=f"{month.since:%B %Y}, {whose(state.budget)}",
    )


def accuracy_chart(comparisons: Sequence[Comparison]) -> Chart:
    """Predicted against actual time; on the line both are equal."""
    newest = comparisons[-MOST_POINTS:]
    by_gpu: dict[str, list[Comparison]] = {}
    for one in newest:
        by_gpu.setdefault(one.run.gpu, []).append(one)
    series = tuple(
        Series(
            gpu,
            tuple((one.predicted_s.p50, one.actual_s) for one in group),
            details=tuple(map(_comparison_detail, group)),
        )
        for gpu, group in by_gpu.items()
    )
    times = [time for one in newest for time in (one.predicted_s.p50, one.actual_s)]
    diagonal = Series("as predicted", ((min(times), min(times)), (max(times), max(times))), tone=Tone.FAINT)
    return Chart(
        x=Axis(DURATION, title="predicted"),
        y=Axis(DURATION, title="actual"),
        series=series,
        is_log=True,
        guides=(diagonal,),
        title="Predicted and actual time (bars: p50 to p90)",
        note=f"the newest {len(newest):,} of {len(comparisons):,} runs"
        if len(newest) < len(comparisons)
        else "",
    )


def _comparison_detail(one: Comparison) -> Detail:
    times = f"{format_duration(one.actual_s)}, predicted {format_duration(one.predicted_s.p50)}"
    return Detail(
        label=f"{one.run.script}\n{one.run.num_gpus} x {one.run.gpu}\n{times}",
        x_range=(one.predicted_s.p50, one.predicted_s.p90),
    )


def price_charts(moves: Sequence[Move], until: float) -> Iterator[Chart]:
    """Prices over the period, a chart a GPU, spot prices with the band of each step."""
    by_gpu: dict[str, list[Move]] = {}
    for move in moves:
        by_gpu.setdefault(move.gpu, []).append(move)
    for gpu, group in by_gpu.items():
        left_out = len(group) - MOST_CURVES
        yield Chart(
            x=Axis(DAY, title="day"),
            y=Axis(USD_PER_H, title="USD per hour"),
            series=tuple(map(_curve, group[:MOST_CURVES])),
            until=until,
            title=f"Prices of {gpu} (bands: p10 to p90)",
            note=f"{left_out} more are in the table" if left_out > 0 else "",
        )


def _curve(move: Move) -> Series:
    series = move.series
    name = f"{series.provider} {series.instance_type} {series.zone or series.region} {series.market}"
    return Series(
        name,
        tuple((step.since.timestamp(), step.usd_per_h.p50) for step in move.steps),
        details=tuple(Detail(y_range=(step.usd_per_h.p10, step.usd_per_h.p90)) for step in move.steps),
    )
