"""The headline figures of an evaluation, and where the studies are: docs/accuracy/README.md.

``python -m benchmarks.accuracy.headline`` writes the page from ``research/docs/accuracy/results.json``.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.accuracy.summary import cell, markdown

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "research" / "docs" / "accuracy" / "results.json"
PAGE = ROOT / "docs" / "accuracy" / "README.md"

_TEMPLATE = Path(__file__).with_name("headline_page.md")


def headline(results: Mapping[str, Any]) -> str:
    """Markdown of the headline figures.

    Args:
        results: the document that ``benchmarks.accuracy --report`` publishes.
    """
    scored = [score for score in results["throughput"] if not score["case"]["fitted"]]
    return _TEMPLATE.read_text(encoding="utf-8").format(
        date=results["date"],
        studies="../../research/docs/accuracy",
        iterations=_iterations(results["summary"]),
        left_out=_left_out(results["left_out"]),
        scored=len(scored),
        mean=statistics.fmean(abs(score["error"]) for score in scored),
    )


def _iterations(summary: Mapping[str, Any]) -> str:
    groups = {
        name: group for name, group in summary.items() if name == "clean" or not name.startswith("clean")
    }
    others = [name for name in summary["all"] if name != "advisor"]
    rows = [
        [name, str(group["advisor"]["rows"]), cell(group["advisor"]), f"{group['advisor']['coverage']:.0%}"]
        + [f"{100 * group[other]['mean']:.1f}" for other in others]
        for name, group in groups.items()
    ]
    return markdown(
        ["rows", "number", "advisor", "within p10..p90", *(f"{name}, mean" for name in others)], rows
    )


def _left_out(left_out: Mapping[str, Any]) -> str:
    rows = []
    for gpu, states in left_out.items():
        ours = [states[state]["summary"]["all"]["advisor"] for state in ("unseen", "calibrated")]
        rows.append([gpu, str(ours[0]["rows"]), *map(cell, ours)])
    return markdown(["GPU left out", "rows", "unseen", "calibrated"], rows)


if __name__ == "__main__":
    PAGE.write_text(headline(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
