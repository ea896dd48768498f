"""Traces and estimates as tables, charts and JSON: operators, times, assumptions, and where memory goes."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import starmap
from pathlib import Path

from advisor.core import values
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import OtherWorld
from advisor.core.units import format_bytes, format_duration
from advisor.report import document as doc
from advisor.report.words import all_told, finding_json, sentence, sentences, warnings_json
from advisor.report.words.estimate_notes import remedy_text


def trace_document(trace: values.Trace, path: Path) -> doc.Document:
    """A summary, and where the trace was written."""
    table = trace_table(trace, first=(("written to", str(path)),))
    facts = {"trace": {"path": str(path), **summary(trace)}, **warnings_json(trace.warnings)}
    return doc.Document(facts=facts, blocks=(table,), title=f"Trace of {trace.script}")


def trace_table(
    trace: values.Trace, *, first: tuple[tuple[str, str], ...] = (), caption: str = ""
) -> doc.Table:
    """Name and text of each figure."""
    return doc.Table(
        columns=doc.columns("Trace", ""),
        rows=tuple(map(doc.Row, (*first, *trace_texts(trace).items()))),
        caption=caption,
    )


def trace_texts(trace: values.Trace) -> dict[str, str]:
    """Each figure of the summary in words."""
    texts = {name: _text(name, value) for name, value in summary(trace).items()}
    return texts | {"collectives": ", ".join(map(_collective_text, trace.collectives)) or "none"}


def summary(trace: values.Trace) -> dict[str, object]:
    """The figures of a trace that fit on a screen; units in the names."""
    calls = {f"{phase}_ops": sum(op.count for op in trace.ops if op.phase is phase) for phase in values.Phase}
    return {
        "script": trace.script,
        "arguments": list(trace.arguments),
        **doc.facts_of(
            trace, "backend origin_gpu batch_size samples_per_epoch iterations_per_epoch accumulation"
        ),
        **doc.facts_of(trace, "data_loading_s loader_cpu_s_per_sample num_workers"),
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


def _collective_text(collective: values.Collective) -> str:
    size, ranks = collective.num_bytes, collective.world_size
    of_size = "of unknown size" if size is None else f"of {format_bytes(size)}"
    among = "" if ranks is None else f" among {ranks}"
    return f"{collective.count} {collective.kind} {of_size}{among}"


def throughput_facts(estimate: values.IterationEstimate) -> Iterator[doc.Fact]:
    """A line each, of what is known."""
    rate, mfu, peak = estimate.samples_per_s, estimate.mfu, estimate.work.peak_flops_per_s
    if rate is not None:
        note = "" if estimate.num_gpus == 1 else f"of all {estimate.num_gpus} GPUs"
        yield doc.Fact("samples per second", f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}", note)
    if mfu is not None and peak is not None:
        yield doc.Fact("MFU", f"{mfu:.1%}", f"model FLOPs utilization, of {peak / 1e12:,.4g} TFLOP/s a GPU")


_FITS = {values.Fit.CERTAIN: "", values.Fit.LIKELY: ", likely", values.Fit.NO: ", not enough"}
# Those that cost the least time; JSON has all.
_MOST_REMEDIES = 5


def memory_json(estimate: values.IterationEstimate) -> Mapping[str, object] | None:
    """Parts, need and what would fit, by contract (docs/json.md); None where the need is unknown."""
    memory, largest = estimate.memory, estimate.largest_batch
    if memory is None:
        return None
    return {
        "parts": {f"{part}_bytes": num_bytes for part, num_bytes in memory.parts.items()},
        "need_bytes": asdict(memory.need_bytes),
        "fit": estimate.fit,
        "largest_batch": None if largest is None else asdict(largest),
        "remedies": [asdict(remedy) for remedy in estimate.remedies],
    }


def memory_facts(estimate: values.IterationEstimate, trace: values.Trace | None = None) -> Iterator[doc.Fact]:
    """A line each; parts add up to the need. The trace tells how to confirm the largest batch."""
    memory = estimate.memory
    if memory is None:
        yield doc.Fact("needed", "unknown")
        yield doc.Fact("available", format_bytes(estimate.memory_limit_bytes))
        return
    yield from (
        doc.Fact(part, format_bytes(num_bytes)) for part, num_bytes in memory.parts.items() if num_bytes
    )
    low, high = format_bytes(memory.need_bytes.p10), format_bytes(memory.need_bytes.p90)
    yield doc.Fact("needed", f"{format_bytes(memory.need_bytes.p50)} ({low} .. {high})")
    fit = _FITS[memory.fit(estimate.memory_limit_bytes)]
    yield doc.Fact("available", f"{format_bytes(estimate.memory_limit_bytes)}{fit}")
    if (largest := estimate.largest_batch) is not None:
        yield doc.Fact("largest batch", _largest(largest, None if trace is None else trace.batch_size))
        # Late, since other answers show options and predict nothing.
        from advisor.predict.largest_batch import arguments_of_largest

        arguments = None if trace is None else arguments_of_largest(trace, largest)
        if trace is not None and arguments is not None:
            again = shlex.join([trace.script, "--gpu", estimate.gpu, "--", *arguments])
            yield doc.Fact("to confirm", f"advisor predict {again}")
    yield from (doc.Fact("would fit", _remedy(remedy)) for remedy in estimate.remedies[:_MOST_REMEDIES])


def _largest(largest: values.LargestBatch, batch_size: int | None) -> str:
    if largest.likely is None or largest.certain is None:
        return f"{largest.share:.2g} of the profiled one"
    profiled = "" if batch_size is None else f"; {batch_size:,} was profiled"
    if largest.certain == largest.likely:
        return f"{largest.likely:,}{profiled}"
    return f"{largest.certain:,}, and likely up to {largest.likely:,}{profiled}"


def confirmed_fact(confirmation: values.Confirmation) -> doc.Fact:
    """What profiling the largest batch showed."""
    estimate, size = confirmation.estimate, confirmation.batch_size
    memory = estimate.memory
    profiled = "the largest batch was profiled" if size is None else f"{size:,} was profiled"
    if memory is None:
        return doc.Fact("confirmed", f"{profiled}, and its need is unknown")
    limit = format_bytes(estimate.memory_limit_bytes)
    words = {values.Fit.CERTAIN: "fits", values.Fit.LIKELY: "is likely to fit"}
    fits = words.get(estimate.fit or values.Fit.NO, "does not fit")
    return doc.Fact(
        "confirmed", f"{profiled}: {format_bytes(memory.need_bytes.p50)} of {limit}, which {fits}"
    )


def _remedy(remedy: values.Remedy) -> str:
    facts = {"changes": remedy.changes, "needed_bytes": remedy.need_bytes.p50, "slower": remedy.slower.p50}
    likely = ", likely" if remedy.fit is values.Fit.LIKELY else ""
    return f"{remedy_text(facts)}{likely}"


def by_gpus(estimates: Sequence[values.IterationEstimate]) -> Iterator[tuple[Finding, str]]:
    """Each assumption and whose it is: first those that hold for all GPUs, then the others.

    GPUs are named as ``--gpu`` takes them, or those that are left out where they are fewer: ``all but T4``.
    """
    names = [_name(estimate) for estimate in estimates]
    holders: dict[Finding, list[str]] = {}
    for name, estimate in zip(names, estimates, strict=True):
        for assumption in dict.fromkeys(estimate.assumptions):
            holders.setdefault(assumption, []).append(name)
    for assumption, holding in sorted(holders.items(), key=lambda item: len(item[1]) < len(names)):
        yield assumption, _named(holding, names)


def _name(estimate: values.IterationEstimate) -> str:
    if estimate.num_gpus == 1:
        return estimate.gpu
    nodes = "" if estimate.layout.num_nodes == 1 else f"x{estimate.layout.num_nodes}"
    return f"{estimate.gpu}:{estimate.layout.gpus_per_node}{nodes}"


def _named(holding: Sequence[str], names: Sequence[str]) -> str:
    others = [name for name in names if name not in holding]
    if not others:
        return ""
    return f"all but {', '.join(others)}" if len(others) < len(holding) else ", ".join(holding)


_LABELS = {True: "fits in memory", None: "unknown whether it fits in memory", False: "does not fit in memory"}
_TONES = {True: None, None: doc.Tone.DOUBTFUL, False: doc.Tone.FAINT}


def iterations_chart(estimates: Sequence[values.IterationEstimate]) -> Iterator[doc.Chart]:
    """The fastest first; nothing where there is no estimate."""
    drawn = sorted(estimates, key=lambda one: one.iteration_s.p50)
    series = tuple(_series(drawn, fits) for fits in _LABELS if fits in {one.fits_memory for one in drawn})
    if series:
        yield doc.Chart(
            title="Time of an iteration: median, and from p10 to p90",
            x=doc.Axis(doc.TEXT),
            y=doc.Axis(doc.DURATION),
            bars=tuple(one.layout.of(one.gpu) for one in drawn),
            series=series,
        )


def _series(estimates: Sequence[values.IterationEstimate], fits: bool | None) -> doc.Series:
    bars = [(place, one) for place, one in enumerate(estimates) if one.fits_memory is fits]
    points = tuple((place, one.iteration_s.p50) for place, one in bars)
    return doc.Series(_LABELS[fits], points, tuple(_detail(one) for _, one in bars), _TONES[fits])


def _detail(estimate: values.IterationEstimate) -> doc.Detail:
    times = estimate.iteration_s
    label = f"{estimate.layout.of(estimate.gpu)}\n{doc.interval_text(times)}\n{_LABELS[estimate.fits_memory]}"
    return doc.Detail(label=label, y_range=(times.p10, times.p90))


COLUMNS = (
    *doc.columns("GPU", ("Count", doc.PLAIN), ("Iteration p10 .. p50 .. p90", doc.STEP), wraps=False),
    *doc.columns(("Memory", doc.BYTES), "Fits", wraps=False),
    *doc.columns("Largest shares", "How"),
)
# Of a narrow terminal: a GPU with its count, and how alone if there is room for it on one line.
NARROW_COLUMNS = (
    COLUMNS[0],
    doc.Column("p10 .. p50 .. p90", doc.PLAIN, wraps=False),
    *COLUMNS[3:5],
    doc.Column("How", wraps=False),
)
# A method that found less of the time is left out of the column.
_LEAST_SHARE = 0.005
_FITS_WORDS = {values.Fit.CERTAIN: "yes", values.Fit.LIKELY: "likely", values.Fit.NO: "no", None: "?"}


def estimates_document(
    trace: values.Trace,
    estimates: Sequence[values.IterationEstimate],
    doubts: Sequence[Finding] = (),
    confirmed: values.Confirmation | None = None,
) -> doc.Document:
    """Estimates in the given order, what they rest on, what makes some doubtful, and a batch confirmed."""
    warnings = (*trace.warnings, *doubts)
    facts = {
        "trace": summary(trace),
        "estimates": [estimate_json(estimate) for estimate in estimates],
        **warnings_json(warnings),
        "doubt_findings": list(map(finding_json, doubts)),
        "confirmed": confirmed
        and {
            **doc.facts_of(confirmed, "arguments batch_size"),
            "estimate": estimate_json(confirmed.estimate),
        },
    }
    blocks: tuple[doc.Block, ...] = (
        _table(estimates),
        *_in_parts(trace, estimates, confirmed),
        *_assumptions(estimates),
    )
    return doc.Document(
        facts=facts,
        blocks=blocks,
        title=f"Time and memory of {trace.script or 'this script'}",
        page=lambda: (
            *iterations_chart(list(filter(_has_time, estimates))),
            *blocks,
            *doc.warnings_of(sentences(warnings)),
        ),
    )


def _table(estimates: Sequence[values.IterationEstimate]) -> doc.Table:
    cells = [_cells(estimate) for estimate in estimates]
    tones = [doc.Tone.FAINT if estimate.fits_memory is False else doc.Tone.PLAIN for estimate in estimates]
    rows = [
        (_name(one), _short(one.iteration_s) if _has_time(one) else "unknown", *row[3:5], row[6])
        for one, row in zip(estimates, cells, strict=True)
    ]
    short = [(*row[:4], str(row[4]).partition(",")[0]) for row in rows]
    narrow: tuple[doc.Table, ...] = ()
    for some in ([row[:4] for row in short], short, rows):
        columns = NARROW_COLUMNS[: len(some[0]) if some else None]
        narrow = (doc.Table(columns=columns, rows=tuple(map(doc.Row, some, tones)), narrow=narrow),)
    wide = tuple(map(doc.Row, cells, tones))
    return doc.Table(columns=COLUMNS, rows=wide, narrow=narrow, narrow_below=doc.NARROW, keeps_words=False)


def _short(interval: values.Interval) -> doc.Worded:
    """``59.1 .. 98.6 .. 165 ms``: the unit once, where all have the same."""
    words = [doc.step_text(edge) for edge in (interval.p10, interval.p50, interval.p90)]
    units = {word.partition(" ")[2] for word in words}
    # Whole minutes would read as numbers without a meaning.
    if units <= {"ms"} or units <= {"s"}:
        words[:2] = [word.partition(" ")[0] for word in words[:2]]
    return doc.Worded(" .. ".join(words), interval.p50)


def _in_parts(
    trace: values.Trace, estimates: Sequence[values.IterationEstimate], confirmed: values.Confirmation | None
) -> Iterator[doc.Section]:
    """Of the one GPU that was asked about: a table of several has no room for it."""
    if len(estimates) > 1:
        return
    throughput = tuple(fact for one in estimates if _has_time(one) for fact in throughput_facts(one))
    memory = tuple(fact for one in estimates for fact in memory_facts(one, trace))
    if confirmed is not None:
        memory = (*memory, confirmed_fact(confirmed))
    sections = {"Throughput": throughput, "Memory of one GPU": memory}
    yield from (doc.Section(title, facts) for title, facts in sections.items() if facts)


# Names behind an assumption; the rest are counted.
_MOST_NAMES = 6


def _assumptions(estimates: Sequence[values.IterationEstimate]) -> tuple[doc.Section, ...]:
    """Each once; those that differ in the GPU they name alone are one of all these GPUs."""
    alike: dict[Finding, list[tuple[Finding, str]]] = {}
    for assumption, gpus in by_gpus(estimates):
        facts = assumption.facts
        of_any = type(assumption)(**{**facts, "gpu": "these GPUs"}) if "gpu" in facts else assumption
        alike.setdefault(of_any, []).append((assumption, gpus))
    lines = tuple(starmap(_line, alike.items()))
    return (doc.Section("What the estimates rest on", lines),) if lines else ()


def _line(of_any: Finding, alike: Sequence[tuple[Finding, str]]) -> str:
    of_any = alike[0][0] if len(alike) == 1 else of_any
    names = [name for _, gpus in alike for name in gpus.split(", ") if name]
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    whose = f" [{', '.join([*names[:_MOST_NAMES], *more])}]" if names else ""
    return f"{sentence(of_any)}{whose}"


def estimate_json(estimate: values.IterationEstimate) -> Mapping[str, object]:
    """One estimate; seconds and bytes."""
    return {
        **doc.facts_of(estimate, "gpu num_gpus"),
        "split": estimate.split.name or None,
        **doc.facts_of(estimate.layout, "num_nodes gpus_per_node"),
        **doc.facts_of(estimate, "iteration_s samples_per_s mfu communication_s loading_s input_s binds"),
        **doc.facts_of(estimate, "memory_bytes memory_limit_bytes fits_memory"),
        "memory": memory_json(estimate),
        **doc.facts_of(estimate, "by_family by_method by_operator"),
        **all_told("assumptions", estimate.assumptions),
    }


def _has_time(estimate: values.IterationEstimate) -> bool:
    """Whether the trace tells it: on another number of ranks than share its model it does not."""
    return all(not isinstance(assumption, OtherWorld) for assumption in estimate.assumptions)


def _cells(estimate: values.IterationEstimate) -> tuple[doc.Cell, ...]:
    total_s = estimate.iteration_s.p50
    largest = list(estimate.by_family.items())[:2]
    methods = sorted(estimate.by_method.items(), key=lambda item: -item[1])
    is_known, layout = _has_time(estimate), estimate.layout
    return (
        estimate.gpu,
        layout.num_gpus if layout.num_nodes == 1 else f"{layout.num_nodes} x {layout.gpus_per_node}",
        estimate.iteration_s if is_known else "unknown",
        "unknown" if estimate.memory_bytes is None else estimate.memory_bytes,
        _FITS_WORDS[estimate.fit],
        ", ".join(f"{name} {seconds / total_s:.0%}" for name, seconds in largest if is_known),
        ", ".join(
            f"{s / total_s:.0%} {name}" for name, s in methods if is_known and s >= _LEAST_SHARE * total_s
        ),
    )
