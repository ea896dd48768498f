"""Errors of all predictors of a table: by GPU, by mode, of all rows and of those with a clean label."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

OURS = "predicted_ms"
_TIMES = ("measured_ms", "forward_ms", "backward_ms", "p10_ms", "p90_ms", OURS)

Row = Mapping[str, Any]
Errors = dict[str, float | int | None]
Summary = Mapping[str, Mapping[str, Errors]]


def summarise(rows: Sequence[Row]) -> dict[str, dict[str, Errors]]:
    """Group -> predictor -> errors.

    Groups are each GPU, each mode and all rows; the same again of the rows whose ``label`` is ``clean``.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        names = [row["gpu"], f"all {row['mode']}", "all"]
        if row.get("label") == "clean":
            names += [f"clean {row['gpu']}", f"clean {row['mode']}", "clean"]
        for group in names:
            groups.setdefault(group, []).append(row)
    return {group: _by_predictor(groups[group]) for group in sorted(groups, key=_order)}


def _order(group: str) -> tuple[bool, bool, str]:
    """GPUs first, then what sums them up; clean ones last."""
    is_sum = group.removeprefix("clean ") in ("clean", "inf", "train") or group.startswith("all")
    return group.startswith("clean"), is_sum, group


def _by_predictor(rows: Sequence[Row]) -> dict[str, Errors]:
    by_predictor = {name: errors(rows, f"{name}_ms") for name in predictors(rows)}
    ours = errors(rows, OURS) | {"coverage": coverage(rows), "below_p90": below_p90(rows)}
    return {"advisor": ours, **by_predictor}


def predictors(rows: Sequence[Row]) -> list[str]:
    """Names of the others that the table has predictions of."""
    others = [name for name in rows[0] if name.endswith("_ms") and name not in _TIMES]
    return [name.removesuffix("_ms") for name in others]


def errors(rows: Sequence[Row], column: str) -> Errors:
    """Errors of a column, over the rows that have it."""
    return errors_of([error for row in rows if (error := error_of(row, column)) is not None])


def error_of(row: Row, column: str) -> float | None:
    """Predicted / measured - 1; None where the row has no such prediction."""
    if row[column] in ("", None):
        return None
    return float(row[column]) / float(row["measured_ms"]) - 1


def errors_of(relative: Sequence[float]) -> Errors:
    """Mean, median, p90 and largest absolute value, as fractions; of nothing, None."""
    values = sorted(abs(value) for value in relative)
    if not values:
        return {"rows": 0, "mean": None, "median": None, "p90": None, "max": None}
    return {
        "rows": len(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "p90": values[math.ceil(0.9 * len(values)) - 1],
        "max": values[-1],
    }


def coverage(rows: Sequence[Row]) -> float:
    """The part of the measurements that lie within p10..p90."""
    inside = [float(row["p10_ms"]) <= float(row["measured_ms"]) <= float(row["p90_ms"]) for row in rows]
    return sum(inside) / len(inside)


def below_p90(rows: Sequence[Row]) -> float:
    """The part of the measurements that p90 covers."""
    return sum(float(row["measured_ms"]) <= float(row["p90_ms"]) for row in rows) / len(rows)


def mean_summary(summaries: Sequence[Summary]) -> dict[str, dict[str, Errors]]:
    """The mean of every figure over summaries of the same rows, one a seed."""
    first = summaries[0]
    return {
        group: {
            name: {key: _mean([s[group][name][key] for s in summaries]) for key in figures}
            for name, figures in by_predictor.items()
        }
        for group, by_predictor in first.items()
    }


def _mean(values: Sequence[float | int | None]) -> float | int | None:
    known = [value for value in values if value is not None]
    if not known or len(set(known)) == 1:
        return known[0] if known else None
    return statistics.fmean(known)


def table(summary: Summary) -> str:
    """The summary in Markdown: mean / median / p90 / largest absolute error in per cent."""
    predictors = list(next(iter(summary.values())))
    lines = [
        f"| rows | number | {' | '.join(predictors)} | within p10..p90 | below p90 |",
        "|---" * (len(predictors) + 4) + "|",
    ]
    for group, by_name in summary.items():
        ours = by_name["advisor"]
        cells = [cell(by_name[name]) for name in predictors]
        covered = f"{ours['coverage']:.0%} | {ours['below_p90']:.0%}"
        lines.append(f"| {group} | {ours['rows']} | {' | '.join(cells)} | {covered} |")
    return "\n".join(lines)


def cell(one: Errors) -> str:
    """Mean / median / p90 / largest in per cent; ``-`` where there is nothing.

    >>> cell({"rows": 2, "mean": 0.15, "median": 0.15, "p90": 0.2, "max": 0.2})
    '15.0 / 15.0 / 20 / 20'
    """
    mean, median, p90, largest = (one[key] for key in ("mean", "median", "p90", "max"))
    if mean is None or median is None or p90 is None or largest is None:
        return "-"
    return f"{100 * mean:.1f} / {100 * median:.1f} / {100 * p90:.0f} / {100 * largest:.0f}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])
