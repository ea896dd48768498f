"""Runs of the ledger as a table and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from advisor.core.units import format_duration, format_usd
from advisor.report.plain import print_lines, print_text, stacked
from advisor.report.rows import Format, fits, print_rows, to_json
from advisor.store.ledger import Run

COLUMNS = ("Started (UTC)", "Project", "Script", "Where", "GPUs", "Duration", "Cost", "Note")
RIGHT = frozenset({"Duration", "Cost"})
WRAPPING = frozenset({"Note"})
# What takes a line of its own in a narrow terminal: texts that people write may be of any length.
NARROW_COLUMNS = ("Started (UTC)", "GPUs, and where", "Duration", "Cost")


def print_runs(found: Sequence[Run], output: Format) -> None:
    """One row a run in the given order, and below a table what they cost together."""
    total_usd = sum(run.cost_usd for run in found)
    if output is Format.JSON:
        print_text(to_json({"runs": [_json(run) for run in found], "total_usd": total_usd, "warnings": []}))
        return
    rows = [_row(run) for run in found]
    if found and output is Format.TABLE and not fits(COLUMNS, rows, wrapping=WRAPPING):
        _print_narrow(rows)
    elif found or output is not Format.TABLE:
        print_rows(COLUMNS, rows, output, right=RIGHT, wrapping=WRAPPING)
    if output is Format.TABLE:
        print_lines(f"{len(found):,} {'run' if len(found) == 1 else 'runs'}, {format_usd(total_usd)}")


def _print_narrow(rows: Sequence[Sequence[str]]) -> None:
    """Project, script and note below where it ran; a project of all runs is said once."""
    projects = {project for _, project, *_ in rows}
    narrow = []
    for started, project, script, where, gpus, duration, cost, note in rows:
        told = (project if len(projects) > 1 else "-", script, note)
        lines = (f"{gpus}, {where}", *(text for text in told if text not in ("", "-")))
        narrow.append([started, stacked(*lines), duration, cost])
    print_rows(NARROW_COLUMNS, narrow, Format.TABLE, right=RIGHT, wrapping=frozenset(NARROW_COLUMNS[1:2]))
    if len(projects) == 1 and projects != {"-"}:
        print_lines(f"project: {projects.pop()}")


def print_recorded(run: Run, is_new: bool, output: Format) -> None:
    """What was entered, or was there before."""
    if output is Format.JSON:
        print_text(to_json({"run": _json(run), "is_new": is_new, "warnings": []}))
    elif output is Format.TABLE:
        print_lines(f"{'Recorded' if is_new else 'Nothing changed: it was recorded before'} as {run.id}.")
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
