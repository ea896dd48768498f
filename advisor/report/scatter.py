"""A Recommendation as a plot in the terminal: time over cost, the frontier by letters."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration_short, format_usd
from advisor.core.values import Option, Recommendation
from advisor.report.options import gpus, ranked, status, where
from advisor.report.plain import print_text
from advisor.report.plot import DOT, MARKS, draw
from advisor.report.rows import console

# Both only ask for more money or time: how far away they are is worth seeing.
_LIMITS = {Code.BUDGET, Code.DEADLINE}
# A logarithm knows no zero; beyond a tenth of the cheapest a plot would mostly be empty.
_FREE = 0.1


def plot_options(recommendation: Recommendation) -> None:
    """The median time and cost of every option that runs, on log axes, to stdout.

    Options that cannot run (memory, sharding, software) or never end are counted below, not drawn.
    """
    print_text(scatter(recommendation, width=console().width))


def scatter(recommendation: Recommendation, *, width: int) -> str:
    """The plot with its legend, a line in words instead of an empty one.

    Args:
        recommendation: frontier options beyond the number of letters become dots.
        width: characters a line may take.
    """
    numbered = list(enumerate(ranked(recommendation), start=1))
    drawn = [(number, option) for number, option in numbered if _is_drawn(option)]
    if not drawn:
        return "There is nothing to plot: no option runs and ends."
    on_frontier = set(recommendation.frontier)
    lettered = [pair for pair in drawn if pair[1].plan.id in on_frontier][: len(MARKS)]
    others = drawn[len(lettered) :]
    least_usd = min((o.cost_usd.p50 for _, o in drawn if o.cost_usd.p50 > 0), default=1.0) * _FREE
    plot = draw(
        {_label(number, option, recommendation): [_point(option, least_usd)] for number, option in lettered},
        x_text=lambda usd: "free" if usd <= least_usd else format_usd(usd),
        y_text=format_duration_short,
        width=width,
        is_log=True,
        dots=[_point(option, least_usd) for _, option in others],
    )
    legend = _legend(len(others), len(numbered) - len(drawn))
    lines = ["Time (median, log scale) over cost (median, log scale)", *plot.splitlines(), *legend]
    return "\n".join(_folded(line, width) for line in lines)


def _is_drawn(option: Option) -> bool:
    ends = math.isfinite(option.time_s.p50) and math.isfinite(option.cost_usd.p50)
    return ends and set(option.removed_by) <= _LIMITS


def _point(option: Option, least_usd: float) -> tuple[float, float]:
    return max(option.cost_usd.p50, least_usd), max(option.time_s.p50, 1e-3)


def _label(number: int, option: Option, recommendation: Recommendation) -> str:
    time, cost = format_duration_short(option.time_s.p50), format_usd(option.cost_usd.p50)
    chosen = ", recommended" if status(option, recommendation) == "recommended" else ""
    return f"#{number}  {time}  {cost}{chosen}: {gpus(option)}, {where(option)}"


def _legend(num_dots: int, num_left_out: int) -> Sequence[str]:
    legend = [f"{DOT} {num_dots} more, over budget or too late included"] if num_dots else []
    if num_left_out:
        legend.append(f"  {num_left_out} not drawn: they cannot run, or never end")
    return legend


def _folded(line: str, width: int) -> str:
    return line if len(line) <= width else textwrap.fill(line, width, subsequent_indent="  ")
