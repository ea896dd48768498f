"""Whole iterations: predicted on the row's GPU, by each of several knowledge folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.core.values import Trace
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge
from benchmarks.accuracy.label_noise import UNKNOWN, LabelNoise
from benchmarks.accuracy.models import Workload
from benchmarks.accuracy.rows import Measured
from benchmarks.accuracy.summary import mean_summary, summarise


def predicted(
    row: Measured, trace: Trace, knowledge: Knowledge, noise: LabelNoise | None = None
) -> dict[str, Any]:
    """The row's columns with our median, p10 and p90 in milliseconds, seconds by method and label noise."""
    estimate = predict(trace, row.gpu, knowledge=knowledge)
    interval = estimate.iteration_s
    return {
        **row.columns,
        "predicted_ms": 1e3 * interval.p50,
        "p10_ms": 1e3 * interval.p10,
        "p90_ms": 1e3 * interval.p90,
        "by_method": {str(method): seconds for method, seconds in estimate.by_method.items()},
        "label": UNKNOWN if noise is None else noise.label,
        "label_noise": None if noise is None else asdict(noise),
    }


def evaluate(
    rows: Sequence[Measured],
    traces: Mapping[Workload, Trace],
    knowledge: Mapping[str, Knowledge],
    noise: Sequence[LabelNoise | None],
) -> dict[str, Any]:
    """All rows by each knowledge, as the JSON document has them.

    Args:
        rows: what was measured.
        traces: of every workload of the rows.
        knowledge: by name; the members of a group of seeds.
        noise: of each row.

    Returns:
        ``rows``: each row, once a knowledge, with its name as ``knowledge`` if there are several;
        ``by_knowledge``: the summary of each; ``summary``: the mean of them.
    """
    by_name = {
        name: [
            predicted(row, traces[row.workload], member, label)
            for row, label in zip(rows, noise, strict=True)
        ]
        for name, member in knowledge.items()
    }
    summaries = {name: summarise(judged) for name, judged in by_name.items()}
    return {
        "rows": [row | {"knowledge": name} for name, judged in by_name.items() for row in judged],
        "by_knowledge": summaries,
        "summary": mean_summary(list(summaries.values())),
    }
