"""A sweep as a table: what to take for each job, and what moved."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath

from advisor.core.units import format_usd
from advisor.core.values import Quantiles
from advisor.report.document import DURATION, USD, Cell, Column, Document, Lines, Row, Section, Table, columns
from advisor.service.sweeping import Advice, Choice, Swept

_COLUMNS = (
    *columns("Job", "Take", "GPUs"),
    Column("Cost (p90)", USD),
    Column("Time (p90)", DURATION),
    Column("Moved"),
)


def sweep_document(swept: Sequence[Swept]) -> Document:
    """A row for each job, the dearest first; failures last."""
    ordered = sorted(swept, key=lambda one: (one.advice.take is None, -cost_of(one.advice)))
    rows = tuple(Row(_cells(one, one.advice.take)) for one in ordered if one.advice.take is not None)
    table = Table(columns=_COLUMNS, rows=rows)
    refused = tuple(f"{_name(one)}: {one.advice.error}" for one in ordered if one.advice.take is None)
    without = (Section("Without an answer", refused),) if refused else ()
    usd = sum(cost_of(one.advice) for one in swept)
    counts = Counter(one.moved for one in swept if one.moved is not None)
    moved = ", ".join(f"{num} by {why}" for why, num in sorted(counts.items()))
    failed = sum(one.advice.take is None for one in swept)
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
    blocks = (*((table,) if rows else ()), *without, lines)
    return Document(facts=facts, blocks=blocks, sheet=table, title="Sweep")


def cost_of(advice: Advice) -> float:
    """Of one run; nothing where no machine was recommended."""
    return advice.take.cost_p50_usd if advice.take else 0.0


def _cells(one: Swept, take: Choice) -> tuple[Cell, ...]:
    gpus = f"{take.num_gpus} x {take.gpu}"
    cost = Quantiles(p50=take.cost_p50_usd, p90=take.cost_p90_usd)
    time = Quantiles(p50=take.time_p50_s, p90=take.time_p90_s)
    return _name(one), take.plan, gpus, cost, time, one.moved


def _name(one: Swept) -> str:
    """Without the folder: most files of a grid lie together."""
    job = one.job
    return " ".join(
        (PurePath(job.subject).name, *job.options, *(("--", job.arguments) if job.arguments else ()))
    )
