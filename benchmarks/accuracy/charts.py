"""Charts of an evaluation as SVG; equal results give equal files. Needs matplotlib (the ``dev`` extra)."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from advisor.core.files import write_atomically
from advisor.core.values import Z90
from benchmarks.accuracy.summary import OURS, Summary, predictors

Row = Mapping[str, Any]
_LEVELS = [level / 20 for level in range(1, 20)]
_SIZE_IN = (7.0, 4.5)


def write_charts(rows: Sequence[Row], summary: Summary, folder: Path) -> dict[str, str]:
    """Draw all of them; file name -> what it shows.

    Raises:
        OSError: the folder is not writable.
    """
    captions = {
        "predicted-measured.svg": "Predicted against measured time of every iteration",
        "error-by-gpu.svg": "Mean absolute error by GPU",
        "coverage.svg": "How many measurements lie below each quantile of their prediction",
    }
    drawings = (
        lambda axes: predicted_measured(axes, rows),
        lambda axes: error_by_gpu(axes, summary),
        lambda axes: quantile_coverage(axes, rows),
    )
    # Identifiers in the file come from this salt, text stays text.
    with mpl.rc_context({"svg.hashsalt": "advisor", "svg.fonttype": "none"}):
        for name, draw in zip(captions, drawings, strict=True):
            figure = Figure(figsize=_SIZE_IN, layout="constrained")
            draw(figure.subplots())
            out = io.BytesIO()
            figure.savefig(out, format="svg", metadata={"Date": None})
            # Lines of paths end in blanks.
            lines = [line.rstrip() for line in out.getvalue().decode().splitlines()]
            write_atomically(folder / name, ("\n".join(lines) + "\n").encode())
    return captions


def predicted_measured(axes: Axes, rows: Sequence[Row]) -> None:
    """Log-log, a colour a predictor, ours on top; times are rounded to two digits."""
    others = predictors(rows)
    colours = _colours(["advisor", *others])
    for name in (*others, "advisor"):
        column = OURS if name == "advisor" else f"{name}_ms"
        known = [row for row in rows if row[column] not in ("", None)]
        axes.scatter(
            [two_digits(float(row["measured_ms"])) for row in known],
            [two_digits(float(row[column])) for row in known],
            s=28 if name == "advisor" else 12,
            label=name,
            color=colours[name],
            marker="o" if name == "advisor" else "x",
        )
    ends = [f([float(row["measured_ms"]) for row in rows]) for f in (min, max)]
    axes.plot(ends, ends, color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="predicted, ms")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.legend()


def _colours(names: Sequence[str]) -> dict[str, str]:
    """A predictor has one colour in all charts."""
    return {name: f"C{i}" for i, name in enumerate(names)}


def two_digits(value: float) -> float:
    """Rounded to two significant digits, as much as a chart shows.

    >>> two_digits(3722.6)
    3700.0
    """
    return float(f"{value:.1e}")


def error_by_gpu(axes: Axes, summary: Summary) -> None:
    """Groups of bars: each GPU, then all rows and, where labels were checked, the clean ones."""
    groups = [g for g in summary if not g.startswith(("clean ", "all "))]
    names = list(summary["all"])
    colours, width = _colours(names), 0.8 / len(names)
    for i, name in enumerate(names):
        heights = [100 * (summary[group][name]["mean"] or 0.0) for group in groups]
        axes.bar(
            [at + i * width for at in range(len(groups))], heights, width, label=name, color=colours[name]
        )
    middle = [at + width * (len(names) - 1) / 2 for at in range(len(groups))]
    axes.set_xticks(middle, groups, rotation=30, ha="right")
    axes.set(ylabel="mean absolute error, %")
    axes.legend()


def quantile_coverage(axes: Axes, rows: Sequence[Row]) -> None:
    """The part of measurements below each quantile, beside the diagonal of a calibrated prediction."""
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, label="calibrated")
    axes.plot(_LEVELS, below(rows, _LEVELS), marker="o", label="advisor")
    axes.set(xlabel="quantile of the prediction", ylabel="measurements below it")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend()


def below(rows: Sequence[Row], levels: Sequence[float]) -> list[float]:
    """The part of measurements below each quantile; log-normal on either side of the median."""
    ranks = [_rank(row) for row in rows]
    return [sum(rank <= level for rank in ranks) / len(ranks) for level in levels]


def _rank(row: Row) -> float:
    """The quantile of the prediction that the measurement is."""
    distance = math.log(float(row["measured_ms"]) / row[OURS])
    end = row["p90_ms"] if distance > 0 else row["p10_ms"]
    sigma = abs(math.log(end / row[OURS])) / Z90
    if not sigma:
        return 0.5 if not distance else float(distance > 0)
    return NormalDist().cdf(distance / sigma)
