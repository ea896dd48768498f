"""IterationEstimates as a table and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.core.units import format_bytes
from advisor.core.values import IterationEstimate, Trace
from advisor.report.assumptions import by_gpus
from advisor.report.plain import print_text
from advisor.report.rows import Format, console, print_rows, print_wrapped, to_json
from advisor.report.text import interval_text
from advisor.report.trace import summary
from advisor.report.words import finding_json, sentence, sentences

ITERATION, SHARES, HOW = "Iteration p10 .. p50 .. p90", "Largest shares", "How"
COLUMNS = ("GPU", "Count", ITERATION, "Memory", "Fits", SHARES, HOW)
RIGHT = frozenset({"Count", "Memory"})
NARROW = 110
# A method that found less of the time is left out of the column.
_LEAST_SHARE = 0.005
_FITS = {True: "yes", False: "no", None: "?"}


def print_estimates(trace: Trace, estimates: Sequence[IterationEstimate], output: Format) -> None:
    """Estimates to stdout in the given order; below a table what they rest on."""
    if output is Format.JSON:
        body = {
            "trace": summary(trace),
            "estimates": [estimate_json(estimate) for estimate in estimates],
            "warnings": trace.warnings,
        }
        print_text(to_json(body))
        return
    is_narrow = output is Format.TABLE and console().width < NARROW
    columns = [name for name in COLUMNS if not (is_narrow and name == SHARES)]
    cells = [_cells(estimate) for estimate in estimates]
    rows = [[row[name] for name in columns] for row in cells]
    styles = ["dim" if estimate.fits_memory is False else "" for estimate in estimates]
    wrapping = frozenset({ITERATION, HOW} if is_narrow else {SHARES, HOW})
    print_rows(columns, rows, output, right=RIGHT, styles=styles, wrapping=wrapping)
    if output is Format.TABLE:
        _print_assumptions(estimates)


def _print_assumptions(estimates: Sequence[IterationEstimate]) -> None:
    found = [(sentence(assumption), gpus) for assumption, gpus in by_gpus(estimates)]
    lines = [f"{text} [{gpus}]" if gpus else text for text, gpus in found]
    if lines:
        print_wrapped("What the estimates rest on", lines)


def estimate_json(estimate: IterationEstimate) -> Mapping[str, Any]:
    """One estimate; seconds and bytes."""
    return {
        "gpu": estimate.gpu,
        "num_gpus": estimate.num_gpus,
        "iteration_s": asdict(estimate.iteration_s),
        "communication_s": estimate.communication_s,
        "loading_s": estimate.loading_s,
        "memory_bytes": estimate.memory_bytes,
        "memory_limit_bytes": estimate.memory_limit_bytes,
        "fits_memory": estimate.fits_memory,
        "by_family": estimate.by_family,
        "by_method": estimate.by_method,
        "by_operator": estimate.by_operator,
        "assumptions": sentences(estimate.assumptions),
        "assumption_findings": list(map(finding_json, estimate.assumptions)),
    }


def _cells(estimate: IterationEstimate) -> dict[str, str]:
    total_s = estimate.iteration_s.p50
    largest = list(estimate.by_family.items())[:2]
    methods = sorted(estimate.by_method.items(), key=lambda item: -item[1])
    values = (
        estimate.gpu,
        str(estimate.num_gpus),
        interval_text(estimate.iteration_s),
        "unknown" if estimate.memory_bytes is None else format_bytes(estimate.memory_bytes),
        _FITS[estimate.fits_memory],
        ", ".join(f"{name} {seconds / total_s:.0%}" for name, seconds in largest),
        ", ".join(f"{s / total_s:.0%} {name}" for name, s in methods if s >= _LEAST_SHARE * total_s),
    )
    return dict(zip(COLUMNS, values, strict=True))
