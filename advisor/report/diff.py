"""The price tag of a change as a document: what it costs, where, and which operators did it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from advisor.core.units import format_bytes, format_change, format_duration, format_signed
from advisor.core.values import Option, Trace
from advisor.report.cells import BYTES, COUNT, DURATION, USD, Cell, Value
from advisor.report.document import Block, Column, Document, Row, Section, Table, Tone, columns
from advisor.report.options import STATUS_OF_REMOVAL, gpus, where
from advisor.report.trace import summary, trace_texts
from advisor.report.words import finding_json, sentence, warnings_json
from advisor.service.recommend.diffing import DiffAnswer, PartChange
from recommender.script_change import MachineChange, change_findings

MOST_MACHINES, MOST_PARTS = 8, 8
# What is below it is no reason for anything.
_LEAST_SHARE = 0.005
_MACHINES = (
    Column("GPUs, and where"),
    Column("Time of a run", DURATION, wraps=False),
    Column("Memory", BYTES, wraps=False),
    Column("Cost of a run", USD, wraps=False),
    Column("Change", wraps=False),
)
_PARTS = (
    Column("Operator"),
    Column("Part", wraps=False),
    Column("Calls", COUNT, wraps=False),
    Column("Time of a run", DURATION, wraps=False),
    Column("Change", wraps=False),
)
_SCRIPT = (Column("Script"), Column("Before"), Column("After"))
_SHEET = columns("name", "phase", "base_calls", "head_calls", "base_s", "head_s")
# Figures of a trace that people change; the rest follows from them or from the machine that profiled it.
_CHANGEABLE = (
    "batch_size", "samples_per_epoch", "iterations_per_epoch", "accumulation", "num_workers", "amp_dtype",
    "tf32_matmul", "tf32_cudnn", "forward_ops", "backward_ops", "optimizer_ops", "flops", "parameter_bytes",
    "optimizer_bytes", "activation_bytes", "peak_bytes",
)  # fmt: skip


def diff_document(answer: DiffAnswer) -> Document:
    """What a change of a script costs."""
    findings = change_findings(answer.change)
    blocks: list[Block] = [Section(f"{_capital(sentence(one))}.", ()) for one in findings]
    blocks += _machines(answer.change.machines)
    blocks += _parts(answer)
    blocks += _script(answer.base, answer.head)
    return Document(
        facts={
            **_facts(answer),
            "summary": list(map(sentence, findings)),
            "summary_findings": list(map(finding_json, findings)),
        },
        blocks=tuple(blocks),
        sheet=lambda: _sheet(answer.parts),
        is_letter=True,
        title=f"What a change of {answer.head.script or 'this script'} costs",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _machines(machines: Sequence[MachineChange]) -> Iterator[Table]:
    if machines:
        rows = tuple(map(_machine_row, machines[:MOST_MACHINES]))
        yield Table(columns=_MACHINES, rows=rows, caption="Machines, before and after")


def _machine_row(change: MachineChange) -> Row:
    base, head = change.base, change.head
    either = head or base
    assert either is not None, "a machine of neither answer has no row"  # noqa: S101
    cells: tuple[Cell, ...] = (
        (gpus(either), *dict.fromkeys(where(option) for option in (base, head) if option is not None)),
        tuple(None if option is None else option.time_s.p50 for option in (base, head)),
        tuple(_memory(option) for option in (base, head)),
        tuple(map(_cost, (base, head))),
        _relative(base, head),
    )
    return Row(cells, Tone.PLAIN if head is not None and head.feasible else Tone.FAINT)


def _memory(option: Option | None) -> Value:
    """Of one GPU; the column of costs says where it is too much."""
    if option is None or option.estimate.memory_bytes is None:
        return None if option is None else "unknown"
    return format_bytes(option.estimate.memory_bytes)


def _cost(option: Option | None) -> Value:
    """A median alone, or why there is none."""
    if option is None:
        return None
    if not option.feasible:
        return STATUS_OF_REMOVAL[option.removed_by[0]]
    return "unknown" if option.plan.usd_per_h is None else option.cost_usd.p50


def _relative(base: Option | None, head: Option | None) -> Cell:
    """Of the cost where both show one, else of the time."""
    if base is None or head is None:
        return None
    if base.feasible and head.feasible and base.plan.usd_per_h and head.plan.usd_per_h:
        return format_change(head.cost_usd.p50 / base.cost_usd.p50 - 1)
    # A spot machine that is always reclaimed first never ends the job.
    relative = head.time_s.p50 / base.time_s.p50 - 1
    return f"{format_change(relative)} time" if math.isfinite(relative) else None


def _parts(answer: DiffAnswer) -> Iterator[Table]:
    """The largest changes; the rest is one row, so that the table adds up to the change."""
    base = answer.change.base
    whole_s = sum(part.base_s for part in answer.parts)
    least_s = _LEAST_SHARE * whole_s
    shown = [part for part in answer.parts if abs(part.more_s) >= least_s][:MOST_PARTS]
    rest = answer.parts[len(shown) :]
    is_nothing = not shown and abs(sum(part.more_s for part in rest)) < least_s
    if base is None or is_nothing:
        return
    rows = [Row(_part_cells(part, whole_s)) for part in shown]
    if rest:
        base_s, head_s = sum(part.base_s for part in rest), sum(part.head_s for part in rest)
        rows.append(Row(("all others", "", None, (base_s, head_s), _more(head_s - base_s, whole_s))))
    yield Table(columns=_PARTS, rows=tuple(rows), caption=f"Which operators did it, on {gpus(base)}")


def _part_cells(part: PartChange, whole_s: float) -> tuple[Cell, ...]:
    return (
        part.name,
        "wait" if part.phase is None else part.phase.value,
        None if part.phase is None else (part.base_calls, part.head_calls),
        (part.base_s, part.head_s),
        _more(part.more_s, whole_s),
    )


def _more(more_s: float, whole_s: float) -> str:
    return f"{format_signed(more_s, format_duration)} ({format_change(more_s / whole_s)} of the run)"


def _script(base: Trace, head: Trace) -> Iterator[Table]:
    before, after = trace_texts(base), trace_texts(head)
    rows = [Row((name, before[name], after[name])) for name in _CHANGEABLE if before[name] != after[name]]
    if rows:
        yield Table(columns=_SCRIPT, rows=tuple(rows), caption="What differs in an iteration")


def _sheet(parts: Sequence[PartChange]) -> Table:
    """Every operator as plain numbers."""
    cells = ((p.name, p.phase or "", p.base_calls, p.head_calls, p.base_s, p.head_s) for p in parts)
    return Table(columns=_SHEET, rows=tuple(Row(tuple(map(str, row))) for row in cells))


# --- JSON ------------------------------------------------------------------------------------------


def _facts(answer: DiffAnswer) -> Mapping[str, object]:
    change = answer.change
    return {
        "base": summary(answer.base),
        "head": summary(answer.head),
        "change": {
            "measure": change.measure,
            "relative": change.relative,
            "base": _option_json(change.base),
            "same": _option_json(change.same),
            "head": _option_json(change.head),
        },
        "machines": [_machine_json(machine) for machine in change.machines],
        "operators": [{**asdict(part), "phase": part.phase and part.phase.value} for part in answer.parts],
        **warnings_json(answer.warnings),
    }


def _machine_json(machine: MachineChange) -> Mapping[str, object]:
    return {
        "gpu": machine.gpu,
        "num_gpus": machine.num_gpus,
        "base": _option_json(machine.base),
        "head": _option_json(machine.head),
    }


def _option_json(option: Option | None) -> Mapping[str, object] | None:
    if option is None:
        return None
    estimate = option.estimate
    return {
        "id": option.plan.id,
        "feasible": option.feasible,
        "removed_by": option.removed_by,
        "iterations": option.iterations,
        "iteration_s": asdict(estimate.iteration_s),
        "memory_bytes": estimate.memory_bytes,
        "fits_memory": estimate.fits_memory,
        "time_s": asdict(option.time_s),
        "cost_usd": None if option.plan.usd_per_h is None else asdict(option.cost_usd),
    }
