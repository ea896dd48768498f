"""What ran, as a table and as a receipt."""

from collections.abc import Iterator, Sequence

from advisor.core.units import GIB, format_duration, format_usd
from advisor.core.values import CostKind, Interval, Layout, RunStatus
from advisor.report import document as doc
from advisor.service.receipts import Receipt
from advisor.store.ledger import Run

_STARTED = doc.Column("Started (UTC)", wraps=False)
_FIGURES = (doc.Column("Duration", doc.DURATION, wraps=False), doc.Column("Cost", doc.USD, wraps=False))
COLUMNS = (
    _STARTED,
    *doc.columns("Project", "Script", "Where", "GPUs", "Status", wraps=False),
    doc.Column("Step", doc.DURATION, wraps=False),
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
    return _or_unknown(run.duration_s), _or_unknown(run.cost_usd)


def _or_unknown(figure: float | None) -> doc.Cell:
    return "unknown" if figure is None else figure


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
    yield "machine", _machine(run)
    yield "cost", _cost(run)
    if receipt.stopped_by is not None:
        again = "" if advised is None or advised.command is None else f"; ask again: {advised.command}"
        yield "stopped", f"by {receipt.stopped_by}{again}"
    yield "steps", _steps(run)
    if run.gpu_busy_share is not None:
        yield "gpu", _gpu_use(run, run.gpu_busy_share)
    if receipt.predicted_s is not None:
        yield "predicted", _prediction(receipt.predicted_s, run)
    elif advised is not None:
        yield "predicted", f"for {advised.num_gpus} x {advised.gpu} a step, so nothing for this machine"
    if receipt.is_recorded:
        yield "recorded", f"as {run.id}"


def _machine(run: Run) -> str:
    place = ", ".join(filter(None, (where_of(run), run.instance_type, run.zone or run.region)))
    return f"{gpus_of(run)}, {place or 'of an unknown provider'}"


def _cost(run: Run) -> str:
    if run.cost_usd is None:
        return "unknown: the machine's price is not known (give --plan ID, --usd-per-hour or --cost)"
    if run.cost_kind is not CostKind.ESTIMATED or run.usd_per_h is None:
        return f"{format_usd(run.cost_usd)}, {run.cost_kind}"
    since = (
        "" if run.price_retrieved_at is None else f", price of {doc.day_text(run.price_retrieved_at.date())}"
    )
    return f"{format_usd(run.cost_usd)}, estimated: ${run.usd_per_h:.4g}/h x time{since}"


def _gpu_use(run: Run, busy_share: float) -> str:
    peak = "" if run.gpu_peak_bytes is None else f", {run.gpu_peak_bytes / GIB:.1f} GiB at the peak"
    watts = "" if run.gpu_mean_w is None else f", {run.gpu_mean_w:.0f} W"
    waited = 1 - busy_share
    idle = "" if run.cost_usd is None else f" ({format_usd(run.cost_usd * waited)} of the cost)"
    return f"waited {waited:.0%} of the time{idle}{peak}{watts}"


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
