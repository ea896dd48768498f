"""Runs of the ledger as a document, and as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from advisor.core.units import format_usd
from advisor.report.cells import DURATION, USD, Cell
from advisor.report.document import Block, Column, Document, Lines, Row, Table, columns
from advisor.store.ledger import Run

_STARTED = Column("Started (UTC)", wraps=False)
_FIGURES = (Column("Duration", DURATION, wraps=False), Column("Cost", USD, wraps=False))
COLUMNS = (
    _STARTED,
    *columns("Project", "Script", "Where", "GPUs", wraps=False),
    *_FIGURES,
    Column("Note"),
)
# What takes a line of its own in a narrow terminal: texts that people write may be of any length.
NARROW_COLUMNS = (_STARTED, Column("GPUs, and where"), *_FIGURES)


def runs_document(runs: Sequence[Run]) -> Document:
    """One row a run in the given order, and what they cost together."""
    total_usd = sum(run.cost_usd for run in runs)
    table = Table(columns=COLUMNS, rows=tuple(Row(_wide(run)) for run in runs), narrow=tuple(_narrow(runs)))
    total = Lines((f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}, {format_usd(total_usd)}",))
    return Document(
        facts={"runs": [_json(run) for run in runs], "total_usd": total_usd, "warnings": []},
        blocks=(table, total) if runs else (total,),
        sheet=table,
        title="Runs",
    )


def _narrow(runs: Sequence[Run]) -> Iterator[Block]:
    """Project, script and note below where it ran; a project of all runs is named once."""
    projects = {run.project for run in runs}
    rows = []
    for run in runs:
        texts = (run.project if len(projects) > 1 else "", run.script, run.note)
        lines = (f"{_gpus(run)}, {_where(run)}", *(text for text in texts if text not in ("", "-")))
        rows.append(Row((_started(run), lines, run.duration_s, run.cost_usd)))
    yield Table(columns=NARROW_COLUMNS, rows=tuple(rows))
    if len(projects) == 1 and not projects & {"", "-"}:
        yield Lines((f"project: {projects.pop()}",))


def recorded_document(run: Run, *, is_new: bool) -> Document:
    """What was entered, or was there before."""
    words = f"{'Recorded' if is_new else 'Nothing changed: it was recorded before'} as {run.id}."
    return Document(
        facts={"run": _json(run), "is_new": is_new, "warnings": []},
        blocks=(Lines((words,)),),
        sheet=Table(columns=COLUMNS, rows=(Row(_wide(run)),)),
    )


def _wide(run: Run) -> tuple[Cell, ...]:
    names = run.project or None, run.script or None, _where(run), _gpus(run)
    return _started(run), *names, run.duration_s, run.cost_usd, run.note


def _started(run: Run) -> str:
    return f"{run.started_at:%Y-%m-%d %H:%M}"


def _where(run: Run) -> str:
    return " ".join([run.provider, *([run.market] if run.market is not None else [])])


def _gpus(run: Run) -> str:
    return f"{run.num_gpus} x {run.gpu}"


def _json(run: Run) -> dict[str, object]:
    return asdict(run) | {"started_at": run.started_at.isoformat()}
