"""Options as charts: time over cost, and a machine over its numbers of GPUs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from advisor.core.findings.about_options import RemovedByBudget, RemovedByDeadline
from advisor.core.units import format_duration, format_duration_short, format_usd
from advisor.core.values import Option, Plan, Quantiles, Recommendation
from advisor.report import document as doc
from advisor.report.option_facts import STATUS_OF_REMOVAL, gpus, ranked, selection, status, where
from advisor.report.prices import quote_text
from advisor.report.words import sentence, told, warnings_json
from recommender.scaling_curve import CurvePoint, ScalingCurve

# Both only ask for more money or time: how far away they are is worth seeing.
_LIMITS = {RemovedByBudget.code, RemovedByDeadline.code}
TIME_OVER_COST = "Time (median, log scale) over cost (median, log scale)"
# As many as a reader tells apart, and a terminal has letters.
MOST_SERIES = 26


def time_over_cost(recommendation: Recommendation, top: int | None) -> doc.Chart | doc.Lines:
    """The median time and cost of every option that runs, or a line in words; the frontier has names.

    Options that cannot run (memory, sharding, software) or never end are counted, not drawn. ``top`` is that
    of the table beside it, for its numbers.
    """
    options = ranked(recommendation)
    drawn = [option for option in options if _is_drawn(option)]
    if not drawn:
        return doc.Lines(("There is nothing to plot: no option runs and ends.",))
    best = {*recommendation.frontier, recommendation.recommended}
    rows = selection(recommendation, top)
    named = [(n, option) for n, option in rows if option.plan.id in best and _is_drawn(option)]
    named.sort(key=lambda pair: pair[1].plan.id != recommendation.recommended)  # has a name in any case
    named = sorted(named[:MOST_SERIES], key=lambda pair: pair[1].time_s.p50)
    names = {option.plan.id for _, option in named}
    others = [option for option in drawn if option.plan.id not in names]
    least_usd = least_drawn_usd(option.cost_usd.p50 for option in drawn)
    is_free = any(option.cost_usd.p50 <= least_usd for option in drawn)
    num_left_out = len(options) - len(drawn)
    return doc.Chart(
        title=TIME_OVER_COST,
        x=doc.Axis(doc.USD, "free" if is_free else None, "Cost: median, and to its p90"),
        y=doc.Axis(doc.SHORT_DURATION, title="Time: median, and to its p90"),
        is_log=True,
        series=tuple(_named(*pair, recommendation, least_usd) for pair in named),
        others=tuple(_point(option, least_usd) for option in others),
        others_label=f"{len(others)} more, over budget or too late included" if others else "",
        others_details=tuple(doc.Detail(label=_hover(option, recommendation)) for option in others),
        guides=frontier_line(_point(o, least_usd) for o in drawn if o.plan.id in recommendation.frontier),
        note=f"{num_left_out} not drawn: they cannot run, or never end" if num_left_out else "",
    )


def _is_drawn(option: Option) -> bool:
    ends = math.isfinite(option.time_s.p50) and math.isfinite(option.cost_usd.p50)
    return ends and set(option.removed_by) <= _LIMITS


def _point(option: Option, least_usd: float) -> doc.Point:
    return max(option.cost_usd.p50, least_usd), max(option.time_s.p50, 1e-3)


def _named(number: int, option: Option, recommendation: Recommendation, least_usd: float) -> doc.Series:
    x, y = point = _point(option, least_usd)
    detail = doc.Detail(
        label=_hover(option, recommendation),
        x_range=_up_to_p90(x, option.cost_usd),
        y_range=_up_to_p90(y, option.time_s),
    )
    is_chosen = option.plan.id == recommendation.recommended
    tone = doc.Tone.BEST if is_chosen else doc.Tone.GOOD
    return doc.Series(_label(number, option, recommendation), (point,), (detail,), tone)


def least_drawn_usd(costs_usd: Iterable[float]) -> float:
    """A tenth of the cheapest: a logarithm knows no zero, and a plot with less would mostly be empty."""
    return min((usd for usd in costs_usd if usd > 0), default=1.0) * 0.1


def frontier_line(points: Iterable[doc.Point]) -> tuple[doc.Series, ...]:
    """Through the frontier's points of cost and time; nothing through one."""
    line = tuple(sorted(points))
    return (doc.Series("frontier: nothing is both cheaper and faster", line),) if len(line) > 1 else ()


def _up_to_p90(median: float, quantiles: Quantiles) -> doc.Range | None:
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


_COLUMNS = (
    *doc.columns("GPUs", ("Nodes", doc.COUNT), wraps=False),
    doc.Column("Where"),
    *doc.columns(("Time (p90)", doc.SHORT_DURATION), ("Cost (p90)", doc.USD), wraps=False),
    *doc.columns("For an hour saved", ("Both", doc.USD), wraps=False),
)
_NARROW = (doc.Column("GPUs, and where"), *_COLUMNS[3:6])
_SHEET = doc.columns(
    "id", "num_gpus", "num_nodes", "time_s_p50", "time_s_p90", "cost_usd_p50", "cost_usd_p90",
    "usd_per_h_saved", "total_usd", "removed_by",
)  # fmt: skip
# What a bar says by its colour, and in a terminal by its letter.
_PAYS, _PAST, _REMOVED = "pays", "more than pays", "does not do the job"
_TONES = {_PAYS: doc.Tone.BEST, _PAST: None, _REMOVED: doc.Tone.FAINT}


def curve_document(curve: ScalingCurve, recommendation: Recommendation) -> doc.Document:
    """The point up to which more GPUs pay, both curves, and the figures behind them."""
    verdict = sentence(curve.verdict)
    drawn = [point for point in curve.points if math.isfinite(point.option.time_s.p50)]
    blocks: list[doc.Block] = [doc.Section(f"{verdict[:1].upper()}{verdict[1:]}.", ())]
    if drawn:
        blocks += [
            doc.BLANK,
            _chart("Time until done", doc.SHORT_DURATION, drawn, curve, lambda o: o.option.time_s),
        ]
        blocks += [doc.BLANK, _chart("Cost", doc.USD, drawn, curve, lambda o: o.option.cost_usd)]
    blocks.append(_table(curve))
    return doc.Document(
        facts={**_facts(curve), **warnings_json(recommendation.warnings)},
        blocks=tuple(blocks),
        sheet=lambda: _sheet(curve),
        is_letter=True,
        title=f"{curve.points[0].option.plan.gpu}: time and cost over its number of GPUs",
    )


def _chart(
    title: str,
    kind: doc.Kind,
    points: Sequence[CurvePoint],
    curve: ScalingCurve,
    quantiles_of: Callable[[CurvePoint], Quantiles],
) -> doc.Chart:
    """A bar for each number of GPUs, its p90 beside it where there is room."""
    states = _states(curve)
    series = []
    for label, tone in _TONES.items():
        bars = [(i, quantiles_of(p)) for i, p in enumerate(points) if states[p.option.plan.id] == label]
        if bars:
            details = tuple(
                doc.Detail(y_range=(q.p50, q.p90) if math.isfinite(q.p90) else None) for _, q in bars
            )
            series.append(doc.Series(label, tuple((float(i), q.p50) for i, q in bars), details, tone))
    return doc.Chart(
        title=f"{title}, median",
        x=doc.Axis(doc.TEXT),
        y=doc.Axis(kind),
        bars=tuple(gpus(point.option) for point in points),
        series=tuple(series),
    )


def _states(curve: ScalingCurve) -> Mapping[str, str]:
    """By plan id: whether a number of GPUs pays, is more than pays, or does not do the job."""
    order = [point.option.plan.id for point in curve.points]
    last = len(order) if curve.best is None else order.index(curve.best)
    return {
        point.option.plan.id: _REMOVED if not point.option.feasible else _PAYS if i <= last else _PAST
        for i, point in enumerate(curve.points)
    }


def _table(curve: ScalingCurve) -> doc.Table:
    rows, narrow = [], []
    for point in curve.points:
        option, total = point.option, point.total_usd if math.isfinite(point.total_usd) else None
        cost = "unknown" if option.plan.usd_per_h is None else option.cost_usd
        figures = option.time_s, cost, _saved(point), total
        is_best = option.plan.id == curve.best
        tone = doc.Tone.BEST if is_best else doc.Tone.PLAIN if option.feasible else doc.Tone.FAINT
        rows.append(doc.Row((gpus(option), option.plan.num_nodes, where(option), *figures), tone))
        narrow.append(doc.Row(((gpus(option), where(option)), *figures[:3]), tone))
    return doc.Table(
        columns=_COLUMNS,
        rows=tuple(rows),
        caption="Figures behind the curve",
        narrow=(doc.Table(columns=_NARROW, rows=tuple(narrow)),),
        narrow_below=doc.NARROW,
    )


def _saved(point: CurvePoint) -> doc.Cell:
    if point.option.removed_by:
        return STATUS_OF_REMOVAL[point.option.removed_by[0]]
    saved = point.usd_per_h_saved
    if saved is None:
        return None
    return "saves no time" if math.isinf(saved) else "saves both" if saved <= 0 else format_usd(saved)


def _sheet(curve: ScalingCurve) -> doc.Table:
    rows = []
    for point in curve.points:
        time_s, usd = point.option.time_s, point.option.cost_usd
        flat = {
            **_point_json(point),
            "time_s_p50": time_s.p50,
            "time_s_p90": time_s.p90,
            "cost_usd_p50": usd.p50,
            "cost_usd_p90": usd.p90,
        }
        cells = (flat[column.name] for column in _SHEET)
        rows.append(doc.Row(tuple("" if cell is None else str(cell) for cell in cells)))
    return doc.Table(columns=_SHEET, rows=tuple(rows))


def _facts(curve: ScalingCurve) -> Mapping[str, object]:
    """``advisor recommend --curve PLAN --format json``, see docs/json.md."""
    return {
        "points": [_point_json(point) for point in curve.points],
        "best": curve.best,
        "value_of_time_usd_per_h": curve.worth.hour_usd,
        **told("verdict", curve.verdict),
    }


def _point_json(point: CurvePoint) -> Mapping[str, object]:
    option = point.option
    saved = point.usd_per_h_saved
    return {
        **doc.facts_of(option.plan, "id gpu num_gpus num_nodes"),
        **doc.facts_of(option, "time_s cost_usd"),
        "usd_per_h_saved": None if saved is None or math.isinf(saved) else saved,
        "total_usd": point.total_usd,
        "feasible": option.feasible,
        "removed_by": ", ".join(option.removed_by) or None,
    }
