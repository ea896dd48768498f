"""A Recommendation as a chart: time over cost, each option of the frontier with its name."""

from __future__ import annotations

import math
from collections.abc import Iterable

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_duration_short, format_usd
from advisor.core.values import Option, Plan, Quantiles, Recommendation
from advisor.report.cells import SHORT_DURATION, USD
from advisor.report.document import Axis, Chart, Detail, Lines, Point, Range, Series, Tone
from advisor.report.options import gpus, ranked, selection, status, where
from advisor.report.quotes import quote_text

# Both only ask for more money or time: how far away they are is worth seeing.
_LIMITS = {Code.BUDGET, Code.DEADLINE}
# A logarithm knows no zero; beyond a tenth of the cheapest a plot would mostly be empty.
_FREE = 0.1
# As many as a reader tells apart, and a terminal has letters.
MOST_SERIES = 26


def time_over_cost(recommendation: Recommendation, top: int | None) -> Chart | Lines:
    """The median time and cost of every option that runs, a line in words instead of an empty chart.

    Options that cannot run (memory, sharding, software) or never end are counted, not drawn.

    Args:
        recommendation: what to draw; rows of its frontier have names.
        top: rows of the table beside which it is drawn, for their numbers; None for all.
    """
    options = ranked(recommendation)
    drawn = [option for option in options if _is_drawn(option)]
    if not drawn:
        return Lines(("There is nothing to plot: no option runs and ends.",))
    best = {*recommendation.frontier, recommendation.recommended}
    rows = enumerate(selection(recommendation, top), start=1)
    named = [(n, option) for n, option in rows if option.plan.id in best and _is_drawn(option)][:MOST_SERIES]
    named.sort(key=lambda pair: pair[1].time_s.p50)
    names = {option.plan.id for _, option in named}
    others = [option for option in drawn if option.plan.id not in names]
    least_usd = min((o.cost_usd.p50 for o in drawn if o.cost_usd.p50 > 0), default=1.0) * _FREE
    is_free = any(option.cost_usd.p50 <= least_usd for option in drawn)
    num_left_out = len(options) - len(drawn)
    return Chart(
        title="Time (median, log scale) over cost (median, log scale)",
        x=Axis(USD, "free" if is_free else None, "Cost: median, and to its p90"),
        y=Axis(SHORT_DURATION, title="Time: median, and to its p90"),
        is_log=True,
        series=tuple(_named(*pair, recommendation, least_usd) for pair in named),
        others=tuple(_point(option, least_usd) for option in others),
        others_label=f"{len(others)} more, over budget or too late included" if others else "",
        others_details=tuple(Detail(label=_hover(option, recommendation)) for option in others),
        guides=_frontier(recommendation, drawn, least_usd),
        note=f"{num_left_out} not drawn: they cannot run, or never end" if num_left_out else "",
    )


def _is_drawn(option: Option) -> bool:
    ends = math.isfinite(option.time_s.p50) and math.isfinite(option.cost_usd.p50)
    return ends and set(option.removed_by) <= _LIMITS


def _point(option: Option, least_usd: float) -> Point:
    return max(option.cost_usd.p50, least_usd), max(option.time_s.p50, 1e-3)


def _named(number: int, option: Option, recommendation: Recommendation, least_usd: float) -> Series:
    x, y = point = _point(option, least_usd)
    detail = Detail(
        label=_hover(option, recommendation),
        x_range=_up_to_p90(x, option.cost_usd),
        y_range=_up_to_p90(y, option.time_s),
    )
    is_chosen = option.plan.id == recommendation.recommended
    tone = Tone.BEST if is_chosen else Tone.GOOD
    return Series(_label(number, option, recommendation), (point,), (detail,), tone)


def _frontier(
    recommendation: Recommendation, drawn: Iterable[Option], least_usd: float
) -> tuple[Series, ...]:
    points = sorted(
        _point(option, least_usd) for option in drawn if option.plan.id in recommendation.frontier
    )
    if len(points) < 2:
        return ()
    return (Series("frontier: nothing is both cheaper and faster", tuple(points)),)


def _up_to_p90(median: float, quantiles: Quantiles) -> Range | None:
    return (median, quantiles.p90) if median < quantiles.p90 < math.inf else None


def _hover(option: Option, recommendation: Recommendation) -> str:
    time, cost = option.time_s, option.cost_usd
    lines = (
        f"{gpus(option)}, {where(option)}",
        status(option, recommendation),
        f"time {format_duration(time.p50)}, p90 {format_duration(time.p90)}",
        f"cost {format_usd(cost.p50)}, p90 {format_usd(cost.p90)}",
        _rent(option.plan),
    )
    return "\n".join(line for line in lines if line)


def _rent(plan: Plan) -> str:
    if plan.usd_per_h is None:
        return "what an hour costs is unknown"
    rent = f"{format_usd(plan.usd_per_h)} an hour"
    return rent if plan.price is None else f"{rent} ({quote_text(plan.price)})"


def _label(number: int, option: Option, recommendation: Recommendation) -> str:
    time, cost = format_duration_short(option.time_s.p50), format_usd(option.cost_usd.p50)
    chosen = ", recommended" if status(option, recommendation) == "recommended" else ""
    return f"#{number}  {time}  {cost}{chosen}: {gpus(option)}, {where(option)}"
