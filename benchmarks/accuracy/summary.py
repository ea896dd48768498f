"""Errors of all predictors of a table, by GPU and mode."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

OURS = "predicted_ms"
_TIMES = ("measured_ms", "forward_ms", "backward_ms", "p10_ms", "p90_ms", OURS)

Row = Mapping[str, Any]
Errors = dict[str, float | int | None]


def summarise(rows: Sequence[Row]) -> dict[str, dict[str, Errors]]:
    """Group -> predictor -> errors; groups are each GPU, each mode, and all rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        for group in (row["gpu"], f"all {row['mode']}", "all"):
            groups.setdefault(group, []).append(row)
    return {group: _by_predictor(members) for group, members in sorted(groups.items())}


def _by_predictor(rows: Sequence[Row]) -> dict[str, Errors]:
    others = [name for name in rows[0] if name.endswith("_ms") and name not in _TIMES]
    found = {name.removesuffix("_ms"): errors(rows, name) for name in others}
    return {"advisor": errors(rows, OURS) | {"coverage": coverage(rows)}, **found}


def errors(rows: Sequence[Row], column: str) -> Errors:
    """Mean, median, p90 and largest absolute error as fractions, over the rows that have the column."""
    values = [
        abs(float(row[column]) / float(row["measured_ms"]) - 1)
        for row in rows
        if row[column] not in ("", None)
    ]
    if not values:
        return {"rows": 0, "mean": None, "median": None, "p90": None, "max": None}
    values.sort()
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


def table(summary: Mapping[str, Mapping[str, Errors]]) -> str:
    """The summary in Markdown: mean / median absolute error in per cent."""
    predictors = list(next(iter(summary.values())))
    lines = [
        f"| rows | number | {' | '.join(predictors)} | within p10..p90 |",
        "|---" * (len(predictors) + 3) + "|",
    ]
    for group, found in summary.items():
        ours = found["advisor"]
        cells = [_cell(found[name]) for name in predictors]
        lines.append(f"| {group} | {ours['rows']} | {' | '.join(cells)} | {ours['coverage']:.0%} |")
    return "\n".join(lines)


def _cell(found: Errors) -> str:
    if found["mean"] is None or found["median"] is None:
        return "-"
    return f"{100 * found['mean']:.1f} / {100 * found['median']:.1f}"
