"""A sweep as tables: what to take for each job, what moved, where the money goes, what to commit to."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import PurePath

from advisor.core.redaction import redact
from advisor.core.units import format_usd
from advisor.core.values import Quantiles
from advisor.report import document as doc
from advisor.report.focus_export import parquet_of, pyarrow
from advisor.report.printing import SweepView
from advisor.service.fleet import Candidate, Fleet, FleetJob, FleetSpending, Move
from advisor.service.sweeping import Advice, Choice, Swept

_MOST_ROWS = 20
_COLUMNS = doc.columns("Job", "Take", "GPUs", ("Cost (p90)", doc.USD), ("Time (p90)", doc.DURATION), "Moved")


def sweep_document(fleet: Fleet, show: SweepView) -> doc.Document:
    """One view as a table and a few sentences."""
    views = {
        SweepView.JOBS: _jobs_view,
        SweepView.BEST: _best_view,
        SweepView.MOVED: _moved_view,
        SweepView.BUDGET: _budget_view,
        SweepView.CAPACITY: _capacity_view,
    }
    table, blocks = views[show](fleet)
    facts = {
        "jobs": [_job_json(one) for one in fleet.swept],
        "total_usd": sum(cost_of(one.advice) for one in fleet.swept),
        "best": [_pick_json(pick) for pick in fleet.picks],
        "budget": _spending_json(fleet.spending),
        "capacity": [
            asdict(one) | {"idle": one.idle, "next_pays_from": one.next_pays_from} for one in fleet.pools
        ],
        "warnings": list(fleet.warnings),
    }
    shown = (table, *blocks) if table.rows else blocks
    return doc.Document(facts=facts, blocks=shown, sheet=table, title="Sweep")


def _jobs_view(fleet: Fleet) -> tuple[doc.Table, tuple[doc.Block, ...]]:
    """A row for each job, the dearest first; failures last."""
    swept = fleet.swept
    ordered = sorted(swept, key=lambda one: (one.advice.take is None, -cost_of(one.advice)))
    rows = tuple(doc.Row(_cells(one, one.advice.take)) for one in ordered if one.advice.take is not None)
    refused = tuple(f"{_name(one)}: {one.advice.error}" for one in ordered if one.advice.take is None)
    without = (doc.Section("Without an answer", refused),) if refused else ()
    new = sum(one.is_new for one in swept)
    usd = format_usd(sum(cost_of(one.advice) for one in swept))
    answered = f"{len(rows):,} of {len(swept):,} jobs" if refused else f"{len(swept):,} jobs"
    sums = f"{answered}: {usd} for one run of each; {len(refused):,} without an answer"
    ages = f"{new:,} computed now, {len(swept) - new:,} kept from before"
    unknown = sum(one.advice.take is not None and one.advice.take.usd_per_h is None for one in swept)
    words = [f"Of {unknown:,} of them the cost is not known, and counts nowhere."] if unknown else []
    lines = (f"{sums}; {ages}.", *words, _moved_words(swept))
    return doc.Table(columns=_COLUMNS, rows=rows), (*without, doc.Lines(lines))


def _moved_words(swept: Sequence[Swept]) -> str:
    counts = Counter(one.moved for one in swept if one.moved is not None)
    moved = ", ".join(f"{num} by {why}" for why, num in sorted(counts.items()))
    return f"Moved since the last sweep: {moved}." if moved else "Nothing moved since the last sweep."


def _moved_view(fleet: Fleet) -> tuple[doc.Table, tuple[doc.Block, ...]]:
    rows = tuple(
        doc.Row((_name(one), *map(_taken, (one.before, one.advice)), one.moved))
        for one in fleet.swept
        if one.moved is not None
    )
    table = doc.Table(columns=doc.columns("Job", "Before", "Now", "Why"), rows=rows)
    return table, (doc.Lines((_moved_words(fleet.swept),)),)


def _taken(advice: Advice | None) -> str | None:
    return None if advice is None else advice.take.plan if advice.take else advice.error


def _best_view(fleet: Fleet) -> tuple[doc.Table, tuple[doc.Block, ...]]:
    heads = (
        *doc.columns("Job", "Cheapest", "GPUs", "Arguments", ("Batch", doc.COUNT), ("Tried", doc.COUNT)),
        *doc.columns(("Runs", doc.FOUR_DIGITS), ("A month", doc.USD)),
    )
    rows = tuple(
        doc.Row((*_pick_cells(one, one.best), one.num_tried, one.runs_per_month, one.usd(one.best)))
        for one in fleet.picks
    )
    usd = f"{format_usd(fleet.spending.cheapest_usd)} a month{_work_words(fleet)}"
    line = f"{len(fleet.picks):,} jobs, each on its cheapest machine of known cost: {usd}."
    return doc.Table(columns=heads, rows=rows), (doc.Lines((line,)),)


def _work_words(fleet: Fleet) -> str:
    usd = sum(pick.best.choice.work_usd for pick in fleet.picks)
    return f", {format_usd(usd)} of it once, for work on scripts" if usd else ""


def _pick_cells(pick: FleetJob, one: Candidate) -> tuple[doc.Cell, ...]:
    # A train.py is told from another one by its folder.
    name = " ".join(("/".join(PurePath(pick.script).parts[-2:]), *pick.wants))
    variant = one.job.arguments or PurePath(one.job.subject).name
    return name, one.choice.plan, f"{one.choice.num_gpus} x {one.choice.gpu}", variant, one.batch_size


def _budget_view(fleet: Fleet) -> tuple[doc.Table, tuple[doc.Block, ...]]:
    spent = fleet.spending
    figures = ("More a month", doc.USD), ("Hours saved", doc.FOUR_DIGITS)
    moves = [(move, doc.Tone.PLAIN) for move in spent.moves]
    moves += [(move, doc.Tone.FAINT) for move in spent.next_moves]
    rows = []
    for move, tone in moves[:_MOST_ROWS]:
        cells = move.usd, move.hours, format_usd(move.usd / move.hours)
        rows.append(doc.Row((*_pick_cells(move.pick, move.to)[:3], *cells), tone))
    heads = doc.columns("Move", "To", "GPUs", *figures, "For an hour")
    table = doc.Table(columns=heads, rows=tuple(rows))
    usd, hours = format_usd(spent.usd), f"{spent.hours:,.1f} h"
    cheapest = f"{format_usd(spent.cheapest_usd)} and {spent.cheapest_hours:,.1f} h a month"
    lines = [f"Each job on its cheapest machine of known cost: {cheapest}{_work_words(fleet)}."]
    if math.isinf(spent.budget_usd):
        lines.append(f"All {len(spent.moves):,} moves: {usd} and {hours}.")
    elif spent.cheapest_usd > spent.budget_usd:
        over = format_usd(spent.cheapest_usd - spent.budget_usd)
        lines.append(f"That is {over} above the budget: run less, or raise monthly_budget_usd.")
    else:
        lines.append(
            f"Within {format_usd(spent.budget_usd)}: the first {len(spent.moves):,} moves, {usd} and {hours};"
            f" no other choice is shorter by more than {spent.hours_above_best:,.1f} h."
        )
    if len(moves) > _MOST_ROWS:
        lines.append(f"{len(moves) - _MOST_ROWS:,} more moves are in the JSON.")
    return table, (doc.Lines(tuple(lines)),)


def _capacity_view(fleet: Fleet) -> tuple[doc.Table, tuple[doc.Block, ...]]:
    figures = ("Idle", doc.SHARE), ("Saves a month", doc.USD), ("One more pays from", doc.SHARE)
    rows = []
    for pool in fleet.pools[:_MOST_ROWS]:
        months = None if pool.months is None else f"{pool.months} months"
        cells = pool.idle, pool.saved_usd_per_month, pool.next_pays_from, pool.source
        rows.append(doc.Row((pool.machine, f"{pool.num} of {len(pool.busy)}", months, *cells)))
    lines = [
        "Idle: the odds that the last machine committed to has nothing to do. Spot machines do not count."
    ]
    if not fleet.pools:
        lines = ["Nothing to commit to: no run on demand is recorded or planned."]
    elif not any(pool.months for pool in fleet.pools):
        lines.append('No discount of `commitments` in the grid pays; "One more pays from" says which would.')
    heads = doc.columns("Machine", "Commit to", "For", *figures, "From")
    return doc.Table(columns=heads, rows=tuple(rows)), (doc.Lines(tuple(lines)),)


def _job_json(one: Swept) -> dict[str, object]:
    return {
        "job": one.job.name,
        **doc.facts_of(one.job, "subject arguments"),
        "options": list(one.job.options),
        **doc.facts_of(one, "advice before moved is_new"),
    }


def _pick_json(pick: FleetJob) -> dict[str, object]:
    return {
        **doc.facts_of(pick, "script wants runs_per_month num_tried"),
        "usd_per_month": pick.usd(pick.best),
        "frontier": [
            {"job": one.job.name, "batch_size": one.batch_size, **asdict(one.choice)}
            for one in pick.candidates
        ],
    }


def _spending_json(spent: FleetSpending) -> dict[str, object]:
    return {
        **doc.facts_of(spent, "budget_usd cheapest_usd cheapest_hours usd hours hours_above_best"),
        "moves": list(map(_move_json, spent.moves)),
        "next_moves": list(map(_move_json, spent.next_moves)),
    }


def _move_json(move: Move) -> dict[str, object]:
    return {
        "script": move.pick.script,
        "job": move.to.job.name,
        "to": move.to.choice.plan,
        "usd_per_month": move.usd,
        "hours_saved_per_month": move.hours,
    }


def sweep_parquet(swept: Sequence[Swept]) -> bytes:
    """A row a job as a Parquet file; arguments without secrets. Raises InputError: no pyarrow."""
    none = dict.fromkeys(one.name for one in fields(Choice))
    rows = [
        {
            "subject": one.job.subject,
            "arguments": redact(one.job.arguments),
            "options": list(one.job.options),
            "batch_size": one.advice.batch_size,
            **(asdict(one.advice.take) if one.advice.take else none),
            "plan_before": _taken(one.before),
            "moved": one.moved,
            "error": one.advice.error,
        }
        for one in swept
    ]
    return parquet_of(pyarrow().Table.from_pylist(rows))


def cost_of(advice: Advice) -> float:
    """Of one run; nothing where no machine was recommended, or one of unknown cost."""
    return advice.take.cost_p50_usd if advice.take and advice.take.usd_per_h is not None else 0.0


def _cells(one: Swept, take: Choice) -> tuple[doc.Cell, ...]:
    gpus = f"{take.num_gpus} x {take.gpu}"
    known = take.usd_per_h is not None
    cost = Quantiles(p50=take.cost_p50_usd, p90=take.cost_p90_usd) if known else None
    time = Quantiles(p50=take.time_p50_s, p90=take.time_p90_s)
    return _name(one), take.plan, gpus, cost, time, one.moved


def _name(one: Swept) -> str:
    """Without the folder: most files of a grid lie together."""
    job = one.job
    return " ".join(
        (PurePath(job.subject).name, *job.options, *(("--", job.arguments) if job.arguments else ()))
    )
