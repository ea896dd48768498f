"""Runs of the ledger as a table and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from advisor.report.rows import Format, print_rows, to_json
from advisor.store.ledger import Run
from advisor.units import format_duration, format_usd

COLUMNS = ("Started (UTC)", "Project", "Script", "Where", "GPUs", "Duration", "Cost", "Note")
RIGHT = frozenset({"Duration", "Cost"})
WRAPPING = frozenset({"Project", "Script", "GPUs", "Note"})


def print_runs(found: Sequence[Run], output: Format) -> None:
    """One row a run in the given order, and below a table what they cost together."""
    total_usd = sum(run.cost_usd for run in found)
    if output is Format.JSON:
        print(to_json({"runs": [_json(run) for run in found], "total_usd": total_usd, "warnings": []}))
        return
    if found or output is not Format.TABLE:
        print_rows(COLUMNS, [_row(run) for run in found], output, right=RIGHT, wrapping=WRAPPING)
    if output is Format.TABLE:
        print(f"{len(found):,} {'run' if len(found) == 1 else 'runs'}, {format_usd(total_usd)}")


def print_recorded(run: Run, is_new: bool, output: Format) -> None:
    """What was entered, or was there before."""
    if output is Format.JSON:
        print(to_json({"run": _json(run), "is_new": is_new, "warnings": []}))
    elif output is Format.TABLE:
        print(f"{'Recorded' if is_new else 'Nothing changed: it was recorded before'} as {run.id}.")
    else:
        print_rows(COLUMNS, [_row(run)], output)


def _row(run: Run) -> list[str]:
    return [
        f"{run.started_at:%Y-%m-%d %H:%M}",
        run.project or "-",
        run.script or "-",
        " ".join([run.provider, *([run.market] if run.market is not None else [])]),
        f"{run.num_gpus} x {run.gpu}",
        format_duration(run.duration_s),
        format_usd(run.cost_usd),
        run.note,
    ]


def _json(run: Run) -> dict[str, Any]:
    return asdict(run) | {"started_at": run.started_at.isoformat()}
