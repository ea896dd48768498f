"""IterationEstimates as a document, and as JSON by contract (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from advisor.core.findings import Code, Finding
from advisor.core.values import Confirmation, Fit, IterationEstimate, Layout, Trace
from advisor.report.assumptions import by_gpus
from advisor.report.cells import BYTES, INTERVAL, PLAIN, Cell
from advisor.report.document import NARROW, Block, Column, Document, Row, Section, Table, Tone, warnings_of
from advisor.report.iterations_chart import iterations_chart
from advisor.report.memory_parts import confirmed_fact, memory_facts, memory_json
from advisor.report.throughput import throughput_facts
from advisor.report.trace import summary
from advisor.report.words import finding_json, sentence, sentences, warnings_json

_ITERATION = "Iteration p10 .. p50 .. p90"
COLUMNS = (
    Column("GPU", wraps=False),
    Column("Count", PLAIN, wraps=False),
    Column(_ITERATION, INTERVAL, wraps=False),
    Column("Memory", BYTES, wraps=False),
    Column("Fits", wraps=False),
    Column("Largest shares"),
    Column("How"),
)
NARROW_COLUMNS = (*COLUMNS[:2], Column(_ITERATION, INTERVAL), *COLUMNS[3:5], COLUMNS[6])
# A method that found less of the time is left out of the column.
_LEAST_SHARE = 0.005
_FITS = {Fit.CERTAIN: "yes", Fit.LIKELY: "likely", Fit.NO: "no", None: "?"}


def estimates_document(
    trace: Trace,
    estimates: Sequence[IterationEstimate],
    doubts: Sequence[Finding] = (),
    confirmed: Confirmation | None = None,
) -> Document:
    """Estimates in the given order, what they rest on, what makes some doubtful, and a batch confirmed."""
    warnings = (*trace.warnings, *doubts)
    facts = {
        "trace": summary(trace),
        "estimates": [estimate_json(estimate) for estimate in estimates],
        **warnings_json(warnings),
        "doubt_findings": list(map(finding_json, doubts)),
        "confirmed": None if confirmed is None else confirmation_json(confirmed),
    }
    blocks: tuple[Block, ...] = (
        _table(estimates),
        *_throughput(estimates),
        *_memory(trace, estimates, confirmed),
        *_assumptions(estimates),
    )
    return Document(
        facts=facts,
        blocks=blocks,
        title=f"Time and memory of {trace.script or 'this script'}",
        page=lambda: (
            *iterations_chart(list(filter(_has_time, estimates))),
            *blocks,
            *warnings_of(sentences(warnings)),
        ),
    )


def _table(estimates: Sequence[IterationEstimate]) -> Table:
    cells = [_cells(estimate) for estimate in estimates]
    tones = [Tone.FAINT if estimate.fits_memory is False else Tone.PLAIN for estimate in estimates]
    # On a narrow terminal the shares give way.
    narrow = [(*row[:5], row[6]) for row in cells]
    return Table(
        columns=COLUMNS,
        rows=tuple(map(Row, cells, tones)),
        narrow=(Table(columns=NARROW_COLUMNS, rows=tuple(map(Row, narrow, tones))),),
        narrow_below=NARROW,
        keeps_words=False,
    )


def confirmation_json(confirmed: Confirmation) -> Mapping[str, object]:
    """The largest batch as it was profiled."""
    return {
        "arguments": confirmed.arguments,
        "batch_size": confirmed.batch_size,
        "estimate": estimate_json(confirmed.estimate),
    }


def _memory(
    trace: Trace, estimates: Sequence[IterationEstimate], confirmed: Confirmation | None
) -> tuple[Section, ...]:
    """Part by part where it is one GPU that was asked about: a table of all has no room for it."""
    if len(estimates) > 1:
        return ()
    facts = tuple(fact for one in estimates for fact in memory_facts(one, trace))
    if confirmed is not None:
        facts = (*facts, confirmed_fact(confirmed))
    return (Section("Memory of one GPU", facts),) if facts else ()


def _throughput(estimates: Sequence[IterationEstimate]) -> tuple[Section, ...]:
    """Where it is one GPU that was asked about, as for memory."""
    has_any = len(estimates) == 1 and _has_time(estimates[0])
    facts = tuple(throughput_facts(estimates[0])) if has_any else ()
    return (Section("Throughput", facts),) if facts else ()


def _assumptions(estimates: Sequence[IterationEstimate]) -> tuple[Section, ...]:
    texts = [(sentence(assumption), gpus) for assumption, gpus in by_gpus(estimates)]
    lines = tuple(f"{text} [{gpus}]" if gpus else text for text, gpus in texts)
    return (Section("What the estimates rest on", lines),) if lines else ()


def estimate_json(estimate: IterationEstimate) -> Mapping[str, object]:
    """One estimate; seconds and bytes."""
    return {
        "gpu": estimate.gpu,
        "num_gpus": estimate.num_gpus,
        "split": estimate.split.name or None,
        "num_nodes": estimate.layout.num_nodes,
        "gpus_per_node": estimate.layout.gpus_per_node,
        "iteration_s": asdict(estimate.iteration_s),
        "samples_per_s": estimate.samples_per_s,
        "mfu": estimate.mfu,
        "communication_s": estimate.communication_s,
        "loading_s": estimate.loading_s,
        "input_s": asdict(estimate.input_s) if estimate.input_s else None,
        "binds": estimate.binds,
        "memory_bytes": estimate.memory_bytes,
        "memory_limit_bytes": estimate.memory_limit_bytes,
        "fits_memory": estimate.fits_memory,
        "memory": memory_json(estimate),
        "by_family": estimate.by_family,
        "by_method": estimate.by_method,
        "by_operator": estimate.by_operator,
        "assumptions": sentences(estimate.assumptions),
        "assumption_findings": list(map(finding_json, estimate.assumptions)),
    }


def _number(layout: Layout) -> Cell:
    return layout.num_gpus if layout.num_nodes == 1 else f"{layout.num_nodes} x {layout.gpus_per_node}"


def _has_time(estimate: IterationEstimate) -> bool:
    """Whether the trace tells it: on another number of ranks than share its model it does not."""
    return all(assumption.code is not Code.OTHER_WORLD for assumption in estimate.assumptions)


def _cells(estimate: IterationEstimate) -> tuple[Cell, ...]:
    total_s = estimate.iteration_s.p50
    largest = list(estimate.by_family.items())[:2]
    methods = sorted(estimate.by_method.items(), key=lambda item: -item[1])
    is_known = _has_time(estimate)
    return (
        estimate.gpu,
        _number(estimate.layout),
        estimate.iteration_s if is_known else "unknown",
        "unknown" if estimate.memory_bytes is None else estimate.memory_bytes,
        _FITS[estimate.fit],
        ", ".join(f"{name} {seconds / total_s:.0%}" for name, seconds in largest if is_known),
        ", ".join(
            f"{s / total_s:.0%} {name}" for name, s in methods if is_known and s >= _LEAST_SHARE * total_s
        ),
    )
