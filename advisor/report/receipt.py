"""The receipt of a run as lines: what it took, what that cost, and whether the prediction held."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.units import format_duration, format_usd
from advisor.core.values import CostKind, Interval, RunStatus
from advisor.report.cells import day_text, interval_text
from advisor.report.document import Document, Section
from advisor.report.runs import gpus_of, run_json, where_of
from advisor.service.receipts import Receipt
from advisor.store.ledger import Run

_HOW = {
    RunStatus.FINISHED: "finished",
    RunStatus.FAILED: "failed",
    RunStatus.INTERRUPTED: "was interrupted",
    RunStatus.LOST: "was lost",
}


def receipt_document(receipt: Receipt) -> Document:
    """One line for each thing that is known, and for those that are not."""
    run = receipt.run
    title = f"{run.script or 'The command'} {_HOW[run.status]}, exit code {receipt.exit_code}"
    return Document(
        facts={"run": run_json(run), "is_recorded": receipt.is_recorded, "warnings": []},
        blocks=(Section(title, tuple(f"{name:<11}{words}" for name, words in _lines(receipt))),),
    )


def _lines(receipt: Receipt) -> Iterator[tuple[str, str]]:
    run, advised = receipt.run, receipt.advised
    yield "time", "unknown" if run.duration_s is None else format_duration(run.duration_s)
    yield "machine", _machine(run)
    yield "cost", _cost(run)
    yield "steps", _steps(run)
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
        return "unknown, as the machine's price is: --plan ID, --usd-per-hour or --cost tells"
    if run.cost_kind is not CostKind.ESTIMATED or run.usd_per_h is None:
        return f"{format_usd(run.cost_usd)}, {run.cost_kind}"
    since = "" if run.price_retrieved_at is None else f", price of {day_text(run.price_retrieved_at.date())}"
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
    shown = f"{interval_text(predicted_s)} a step"
    if run.step_s is None:
        return f"{shown}; none was timed"
    measured_s = run.step_s.p50
    off = measured_s / predicted_s.p50 - 1
    held = "held" if predicted_s.p10 <= measured_s <= predicted_s.p90 else "did not hold"
    than = "as predicted" if abs(off) < 0.005 else f"{abs(off):.0%} {'slower' if off > 0 else 'faster'}"
    return f"{shown}: it {held}, {than}"
