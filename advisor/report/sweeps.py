"""A sweep as a table: what to take for each job, and what moved."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath

from advisor.core.units import format_usd
from advisor.core.values import Quantiles
from advisor.report.document import DURATION, USD, Cell, Column, Document, Lines, Row, Section, Table, columns
from advisor.service.sweeping import Advice, Swept

_COLUMNS = (
    *columns("Job", "Take", "GPUs"),
    Column("Cost (p90)", USD),
    Column("Time (p90)", DURATION),
    Column("Moved"),
)


def sweep_document(swept: Sequence[Swept]) -> Document:
    """A row for each job, the dearest first; failures last."""
    ordered = sorted(swept, key=lambda one: (one.advice.plan is None, -(one.advice.cost_p50_usd or 0.0)))
    found = [one for one in ordered if one.advice.plan is not None]
    table = Table(columns=_COLUMNS, rows=tuple(Row(_cells(one)) for one in found))
    refused = tuple(f"{_name(one)}: {one.advice.error}" for one in ordered if one.advice.plan is None)
    without = (Section("Without an answer", refused),) if refused else ()
    usd = sum(one.advice.cost_p50_usd or 0.0 for one in swept)
    counts = Counter(one.moved for one in swept if one.moved is not None)
    moved = ", ".join(f"{num} by {why}" for why, num in sorted(counts.items()))
    failed = sum(one.advice.plan is None for one in swept)
    new = sum(one.is_new for one in swept)
    sums = f"{len(swept):,} jobs: {format_usd(usd)} for one run of each; {failed:,} without an answer"
    ages = f"{new:,} computed now, {len(swept) - new:,} kept from before"
    since = f"Moved since the last sweep: {moved}." if moved else "Nothing moved since the last sweep."
    lines = Lines((f"{sums}; {ages}.", since))
    facts = {
        "jobs": [
            {
                "job": one.job.name,
                "subject": one.job.subject,
                "arguments": one.job.arguments,
                "options": list(one.job.options),
                "advice": asdict(one.advice),
                "before": None if one.before is None else asdict(one.before),
                "moved": one.moved,
                "is_new": one.is_new,
            }
            for one in swept
        ],
        "total_usd": usd,
        "warnings": [],
    }
    blocks = (*((table,) if found else ()), *without, lines)
    return Document(facts=facts, blocks=blocks, sheet=table, title="Sweep")


def _cells(one: Swept) -> tuple[Cell, ...]:
    advice = one.advice
    return _name(one), advice.plan, f"{advice.num_gpus} x {advice.gpu}", *_figures(advice), one.moved


def _name(one: Swept) -> str:
    """Without the folder: most files of a grid lie together."""
    job = one.job
    return " ".join(
        (PurePath(job.subject).name, *job.options, *(("--", job.arguments) if job.arguments else ()))
    )


def _figures(advice: Advice) -> tuple[Cell, Cell]:
    cost = (advice.cost_p50_usd, advice.cost_p90_usd)
    time = (advice.time_p50_s, advice.time_p90_s)
    return _quantiles(*cost), _quantiles(*time)


def _quantiles(p50: float | None, p90: float | None) -> Quantiles | None:
    return None if p50 is None or p90 is None else Quantiles(p50=p50, p90=p90)
