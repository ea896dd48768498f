"""What a Trace holds, in short."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from advisor.core.units import format_bytes, format_duration
from advisor.core.values import Collective, Phase, Trace
from advisor.report.document import Document, Row, Table, columns
from advisor.report.words import warnings_json

COLUMNS = columns("Trace", "")


def trace_document(trace: Trace, path: Path) -> Document:
    """A summary, and where the trace was written."""
    table = trace_table(trace, first=(("written to", str(path)),))
    facts = {"trace": {"path": str(path), **summary(trace)}, **warnings_json(trace.warnings)}
    return Document(facts=facts, blocks=(table,), title=f"Trace of {trace.script}")


def trace_table(trace: Trace, *, first: tuple[tuple[str, str], ...] = (), caption: str = "") -> Table:
    """Name and text of each figure."""
    return Table(
        columns=COLUMNS, rows=tuple(map(Row, (*first, *trace_texts(trace).items()))), caption=caption
    )


def trace_texts(trace: Trace) -> dict[str, str]:
    """Each figure of the summary in words."""
    texts = {name: _text(name, value) for name, value in summary(trace).items()}
    return texts | {"collectives": ", ".join(map(_collective_text, trace.collectives)) or "none"}


def summary(trace: Trace) -> dict[str, object]:
    """The figures of a trace that fit on a screen; units in the names."""
    calls = {f"{phase}_ops": sum(op.count for op in trace.ops if op.phase is phase) for phase in Phase}
    return {
        "script": trace.script,
        "arguments": list(trace.arguments),
        "backend": trace.backend,
        "origin_gpu": trace.origin_gpu,
        "batch_size": trace.batch_size,
        "samples_per_epoch": trace.samples_per_epoch,
        "iterations_per_epoch": trace.iterations_per_epoch,
        "accumulation": trace.accumulation,
        "data_loading_s": trace.data_loading_s,
        "loader_cpu_s_per_sample": trace.loader_cpu_s_per_sample,
        "num_workers": trace.num_workers,
        **asdict(trace.precision),
        "compile_mode": trace.compile_mode,
        **calls,
        "flops": sum(op.flops * op.count for op in trace.ops),
        "bytes": sum(op.bytes * op.count for op in trace.ops),
        **asdict(trace.memory),
        "collectives": [asdict(collective) for collective in trace.collectives],
        "versions": dict(trace.versions),
    }


_OF = {"data_loading_s": " of one process", "loader_cpu_s_per_sample": " of a vCPU"}


def _text(name: str, value: object) -> str:
    if value is None:
        return "none" if name in ("amp_dtype", "compile_mode") else "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format_bytes(value) if name.endswith("bytes") else f"{value:,}"
    if isinstance(value, float):
        return f"{format_duration(value)}{_OF[name]}" if name in _OF else f"{value:g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {version}" for name, version in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return str(value)


def _collective_text(collective: Collective) -> str:
    size, ranks = collective.num_bytes, collective.world_size
    of_size = "of unknown size" if size is None else f"of {format_bytes(size)}"
    among = "" if ranks is None else f" among {ranks}"
    return f"{collective.count} {collective.kind} {of_size}{among}"
