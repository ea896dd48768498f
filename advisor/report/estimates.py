"""IterationEstimates as a table and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.report.rows import Format, print_rows, to_json
from advisor.report.text import interval_text
from advisor.report.trace import summary
from advisor.types import IterationEstimate, Trace
from advisor.units import format_bytes

COLUMNS = ("GPU", "Count", "Iteration p10 .. p50 .. p90", "Memory", "Fits", "Largest shares")
RIGHT = frozenset({"Count", "Memory"})
_FITS = {True: "yes", False: "no", None: "?"}


def print_estimates(trace: Trace, estimates: Sequence[IterationEstimate], output: Format) -> None:
    """Estimates to stdout in the given order."""
    if output is Format.JSON:
        body = {
            "trace": summary(trace),
            "estimates": [estimate_json(estimate) for estimate in estimates],
            "warnings": trace.warnings,
        }
        print(to_json(body))
        return
    rows = [_row(estimate) for estimate in estimates]
    styles = ["dim" if estimate.fits_memory is False else "" for estimate in estimates]
    print_rows(COLUMNS, rows, output, right=RIGHT, styles=styles)


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
        "assumptions": estimate.assumptions,
    }


def _row(estimate: IterationEstimate) -> list[str]:
    total_s = estimate.iteration_s.p50
    largest = list(estimate.by_family.items())[:2]
    return [
        estimate.gpu,
        str(estimate.num_gpus),
        interval_text(estimate.iteration_s),
        "unknown" if estimate.memory_bytes is None else format_bytes(estimate.memory_bytes),
        _FITS[estimate.fits_memory],
        ", ".join(f"{name} {seconds / total_s:.0%}" for name, seconds in largest),
    ]
