"""What the ledger holds: runs as a table and as receipts, recommendations with their frontier."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from advisor.core.units import GIB, format_duration, format_duration_short, format_usd
from advisor.core.values import CostKind, Interval, Layout, RunStatus
from advisor.report import document as doc
from advisor.report.option_charts import MOST_SERIES, TIME_OVER_COST, frontier_line, least_drawn_usd
from advisor.service.receipts import Receipt
from advisor.store.ledger import LedgerEntry, OfferedOption, Run

_STARTED = doc.Column("Started (UTC)", wraps=False)
_FIGURES = doc.columns(("Duration", doc.DURATION), ("Cost", doc.USD), wraps=False)
COLUMNS = (
    _STARTED,
    *doc.columns("Project", "Script", "Where", "GPUs", "Status", ("Step", doc.DURATION), wraps=False),
    *_FIGURES,
    doc.Column("Note"),
)
# What takes a line of its own in a narrow terminal: texts that people write may be of any length.
NARROW_COLUMNS = (_STARTED, doc.Column("GPUs, and where"), *_FIGURES)


def runs_document(runs: Sequence[Run], *, num_left_out: int = 0) -> doc.Document:
    """One row a run in the given order, and what they cost together; what was left out is in no total."""
    known = [run.cost_usd for run in runs if run.cost_usd is not None]
    num_unknown, total_usd = len(runs) - len(known), sum(known)
    table = doc.Table(
        columns=COLUMNS, rows=tuple(doc.Row(_wide(run)) for run in runs), narrow=tuple(_narrow(runs))
    )
    unknown = f" and the unknown cost of {num_unknown:,}" if num_unknown else ""
    left_out = f"; left out, as they cannot be true: {num_left_out:,}" if num_left_out else ""
    count = f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}"
    total = doc.Lines((f"{count}, {format_usd(total_usd)}{unknown}{left_out}",))
    facts = {
        "runs": list(map(doc.all_facts_of, runs)),
        "total_usd": total_usd,
        "num_unknown_costs": num_unknown,
        "num_left_out": num_left_out,
    }
    return doc.Document(
        facts=facts | {"warnings": []}, blocks=(table, total) if runs else (total,), sheet=table, title="Runs"
    )


def _narrow(runs: Sequence[Run]) -> Iterator[doc.Block]:
    """Project, script and note below where it ran; a project of all runs is named once."""
    projects = {run.project for run in runs}
    rows = []
    for run in runs:
        status = "" if run.status is RunStatus.FINISHED else run.status
        texts = (run.project if len(projects) > 1 else "", run.script, status, run.note)
        lines = (f"{gpus_of(run)}, {where_of(run)}", *(text for text in texts if text not in ("", "-")))
        rows.append(doc.Row((_started(run), lines, *_figures(run))))
    yield doc.Table(columns=NARROW_COLUMNS, rows=tuple(rows))
    if len(projects) == 1 and not projects & {"", "-"}:
        yield doc.Lines((f"project: {projects.pop()}",))


def recorded_document(run: Run, *, is_new: bool) -> doc.Document:
    """What was entered, or was there before."""
    words = f"{'Recorded' if is_new else 'Nothing changed: it was recorded before'} as {run.id}."
    return doc.Document(
        facts={"run": doc.all_facts_of(run), "is_new": is_new, "warnings": []},
        blocks=(doc.Lines((words,)),),
        sheet=doc.Table(columns=COLUMNS, rows=(doc.Row(_wide(run)),)),
    )


def _wide(run: Run) -> tuple[doc.Cell, ...]:
    names = run.project or None, run.script or None, where_of(run) or None, gpus_of(run)
    step_s = None if run.step_s is None else run.step_s.p50
    return _started(run), *names, run.status, step_s, *_figures(run), run.note


def _figures(run: Run) -> tuple[doc.Cell, doc.Cell]:
    duration, cost = ("unknown" if it is None else it for it in (run.duration_s, run.cost_usd))
    return duration, cost


def _started(run: Run) -> str:
    return f"{run.started_at:%Y-%m-%d %H:%M}"


def where_of(run: Run) -> str:
    """The provider and how it was rented; empty if unknown."""
    return " ".join([run.provider, *([run.market] if run.market is not None else [])])


def gpus_of(run: Run) -> str:
    """Such as ``8 x L4``, or ``2 x 8 x L4`` of two machines."""
    if not run.num_gpus:
        return "no GPU"
    num_nodes = run.num_nodes or 1
    return Layout(gpus_per_node=run.num_gpus // num_nodes, num_nodes=num_nodes).of(run.gpu)


_HOW = {
    RunStatus.FINISHED: "finished",
    RunStatus.FAILED: "failed",
    RunStatus.INTERRUPTED: "was interrupted",
    RunStatus.LOST: "was lost",
}


def receipt_document(receipt: Receipt) -> doc.Document:
    """One line for each thing that is known, and for those that are not."""
    run = receipt.run
    title = f"{run.script or 'The command'} {_HOW[run.status]}, exit code {receipt.exit_code}"
    return doc.Document(
        facts={"run": doc.all_facts_of(run), "is_recorded": receipt.is_recorded, "warnings": []},
        blocks=(doc.Section(title, tuple(f"{name:<11}{words}" for name, words in _lines(receipt))),),
    )


def _lines(receipt: Receipt) -> Iterator[tuple[str, str]]:
    run, advised = receipt.run, receipt.advised
    yield "time", "unknown" if run.duration_s is None else format_duration(run.duration_s)
    place = ", ".join(filter(None, (where_of(run), run.instance_type, run.zone or run.region)))
    yield "machine", f"{gpus_of(run)}, {place or 'of an unknown provider'}"
    yield "cost", _cost(run)
    if receipt.stopped_by is not None:
        again = "" if advised is None or advised.command is None else f"; ask again: {advised.command}"
        yield "stopped", f"by {receipt.stopped_by}{again}"
    yield "steps", _steps(run)
    if run.gpu_busy_share is not None:
        peak = "" if run.gpu_peak_bytes is None else f", {run.gpu_peak_bytes / GIB:.1f} GiB at the peak"
        watts = "" if run.gpu_mean_w is None else f", {run.gpu_mean_w:.0f} W"
        clock = "" if run.gpu_mean_clock_hz is None else f", {run.gpu_mean_clock_hz / 1e6:,.0f} MHz"
        waited = 1 - run.gpu_busy_share
        idle = "" if run.cost_usd is None else f" ({format_usd(run.cost_usd * waited)} of the cost)"
        yield "gpu", f"waited {waited:.0%} of the time{idle}{peak}{watts}{clock}"
    if receipt.predicted_s is not None:
        yield "predicted", _prediction(receipt.predicted_s, run)
    elif advised is not None:
        yield "predicted", f"for {advised.num_gpus} x {advised.gpu} a step, so nothing for this machine"
    if receipt.is_recorded:
        yield "recorded", f"as {run.id}"


def _cost(run: Run) -> str:
    if run.cost_usd is None:
        return "unknown: the machine's price is not known (give --plan ID, --usd-per-hour or --cost)"
    if run.cost_kind is not CostKind.ESTIMATED or run.usd_per_h is None:
        return f"{format_usd(run.cost_usd)}, {run.cost_kind}"
    since = (
        "" if run.price_retrieved_at is None else f", price of {doc.day_text(run.price_retrieved_at.date())}"
    )
    return f"{format_usd(run.cost_usd)}, estimated: ${run.usd_per_h:.4g}/h x time{since}"


def _steps(run: Run) -> str:
    if run.num_steps is None:
        return "none seen: those of PyTorch optimizers in Python are counted"
    if run.step_s is None:
        return f"{run.num_steps:,}"
    if run.step_s.p10 == run.step_s.p90:
        return f"{run.num_steps:,} of {format_duration(run.step_s.p50)} each"
    ends = f"{format_duration(run.step_s.p10)} .. {format_duration(run.step_s.p90)}"
    return f"{run.num_steps:,} of {format_duration(run.step_s.p50)} each (p10 .. p90: {ends})"


def _prediction(predicted_s: Interval, run: Run) -> str:
    shown = f"{doc.interval_text(predicted_s)} a step"
    if run.step_s is None:
        return f"{shown}; none was timed"
    measured_s = run.step_s.p50
    off = measured_s / predicted_s.p50 - 1
    held = "held" if predicted_s.p10 <= measured_s <= predicted_s.p90 else "did not hold"
    than = "as predicted" if abs(off) < 0.005 else f"{abs(off):.0%} {'slower' if off > 0 else 'faster'}"
    return f"{shown}: it {held}, {than}"


NONE_YET = "No recommendation is recorded yet: `advisor recommend --record` keeps one."
_JOB_COLUMNS = (
    *doc.columns("Script", "Project", wraps=False),
    doc.Column("Take"),
    *doc.columns(("Time (p90)", doc.SHORT_DURATION), ("Cost (p90)", doc.USD), "Asked (UTC)", wraps=False),
)


def jobs_document(entries: Sequence[LedgerEntry]) -> doc.Document:
    """A row for each recommendation in the given order."""
    rows = []
    for one in entries:
        names = one.script, one.project or None, _take(one)
        rows.append(doc.Row((*names, one.time_s, one.cost_usd, f"{one.at:%Y-%m-%d %H:%M}")))
    table = doc.Table(columns=_JOB_COLUMNS, rows=tuple(rows))
    return doc.Document(
        facts={"jobs": [_job_json(one) for one in entries], "warnings": []},
        blocks=(table,) if rows else (doc.Lines((NONE_YET,)),),
        sheet=table,
        title="Jobs",
    )


def job_document(entry: LedgerEntry, runs: Sequence[Run]) -> doc.Document:
    """What was offered, as a chart of time over cost, and what the runs that followed took."""
    return doc.Document(
        facts={
            "job": _job_json(entry),
            "options": [asdict(one) for one in entry.options],
            "runs": list(map(doc.all_facts_of, runs)),
            "warnings": [],
        },
        blocks=tuple(_job_blocks(entry, runs)),
        title=f"{entry.script}: {_take(entry)}",
    )


def _job_json(entry: LedgerEntry) -> dict[str, object]:
    """All but the lists, which may be long."""
    facts = doc.all_facts_of(entry)
    return {name: value for name, value in facts.items() if name not in ("options", "alternatives")}


def _take(entry: LedgerEntry) -> str:
    return f"{entry.num_gpus} x {entry.gpu}, {' '.join(filter(None, (entry.provider, entry.market)))}"


def _job_blocks(entry: LedgerEntry, runs: Sequence[Run]) -> Iterator[doc.Block]:
    yield doc.Section("Recommended", tuple(_job_facts(entry)))
    ends = [one for one in entry.options if one.time_p50_s > 0]
    yield frontier_chart(ends, entry.plan_id) if ends else doc.Lines(("What else was offered is not kept.",))
    if runs:
        yield doc.Section("Predicted against actual", tuple(_against(entry, run) for run in runs))
        yield from runs_document(runs).blocks


def _job_facts(entry: LedgerEntry) -> Iterator[doc.Fact]:
    yield doc.Fact("Plan", entry.plan_id)
    for name, of, words in (("Time", entry.time_s, format_duration), ("Cost", entry.cost_usd, format_usd)):
        yield doc.Fact(name, words(of.p50), f"90 % chance of staying under {words(of.p90)}")
    if entry.budget_usd is not None:
        yield doc.Fact("Budget", format_usd(entry.budget_usd))
    if entry.deadline_s is not None:
        yield doc.Fact("Deadline", format_duration(entry.deadline_s))
    if entry.command:
        yield doc.Fact("Asked by", entry.command)


def _against(entry: LedgerEntry, run: Run) -> doc.Fact:
    took = "an unknown time" if run.duration_s is None else doc.DURATION.words(run.duration_s)
    cost = "an unknown cost" if run.cost_usd is None else format_usd(run.cost_usd)
    predicted = f"predicted: {format_duration(entry.time_s.p50)}, {format_usd(entry.cost_usd.p50)}"
    return doc.Fact(f"{run.started_at:%Y-%m-%d %H:%M}", f"{took}, {cost}", predicted)


def frontier_chart(options: Sequence[OfferedOption], chosen: str) -> doc.Chart:
    """Median time over median cost; the frontier's options have names, as many as a reader tells apart."""
    least_usd = least_drawn_usd(one.cost_p50_usd for one in options)
    named = [one for one in options if one.on_frontier or one.plan_id == chosen]
    best = sorted(named, key=lambda one: one.plan_id != chosen)[:MOST_SERIES]
    others = [one for one in options if one not in best]
    return doc.Chart(
        title=TIME_OVER_COST,
        x=doc.Axis(
            doc.USD, "free" if any(one.cost_p50_usd <= least_usd for one in options) else None, "Cost"
        ),
        y=doc.Axis(doc.SHORT_DURATION, title="Time"),
        is_log=True,
        series=tuple(_named(one, least_usd, is_chosen=one.plan_id == chosen) for one in best),
        others=tuple(_point(one, least_usd) for one in others),
        others_label=f"{len(others)} more" if others else "",
        others_details=tuple(doc.Detail(label=_hover(one)) for one in others),
        guides=frontier_line(_point(one, least_usd) for one in options if one.on_frontier),
    )


def _named(option: OfferedOption, least_usd: float, *, is_chosen: bool) -> doc.Series:
    figures = f"{format_duration_short(option.time_p50_s)}  {format_usd(option.cost_p50_usd)}"
    label = (
        f"{figures}{', recommended' if is_chosen else ''}: {option.num_gpus} x {option.gpu}, {option.plan_id}"
    )
    tone = doc.Tone.BEST if is_chosen else doc.Tone.GOOD
    return doc.Series(label, (_point(option, least_usd),), (doc.Detail(label=_hover(option)),), tone)


def _point(option: OfferedOption, least_usd: float) -> tuple[float, float]:
    return max(option.cost_p50_usd, least_usd), option.time_p50_s


def _hover(option: OfferedOption) -> str:
    lines = (
        f"{option.num_gpus} x {option.gpu}, {option.plan_id}",
        f"time {format_duration(option.time_p50_s)}, p90 {format_duration(option.time_p90_s)}",
        f"cost {format_usd(option.cost_p50_usd)}, p90 {format_usd(option.cost_p90_usd)}",
        "" if option.usd_per_h is None else f"{format_usd(option.usd_per_h)} an hour",
    )
    return "\n".join(filter(None, lines))
