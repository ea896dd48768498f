"""Two plans for one job line by line, and two versions of a script: what decides, and what a change costs."""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from advisor.core.findings import Finding
from advisor.core.units import format_bytes, format_change, format_duration, format_signed, format_usd
from advisor.core.values import Option, Trace
from advisor.predict.step_time import computing_s, waits_s
from advisor.report import document as doc
from advisor.report.estimates import summary, trace_texts
from advisor.report.option_facts import STATUS_OF_REMOVAL, gpus, option_alone, where
from advisor.report.prices import quote_text
from advisor.report.words import all_told, sentence, sentences, told, warnings_json
from advisor.service.recommend.comparing import CompareAnswer, DiffAnswer, PartChange
from recommender.comparison import MachineChange, PlanComparison, change_findings

PROBABILITY = doc.Kind("probability", "{:.2f}".format)
Figure = str | float | None
_FITS = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of both plans."""

    key: str
    """As programs name it, with its unit."""
    name: str
    a: Figure
    """A number, or words; None where it is unknown or there is none."""
    b: Figure
    kind: doc.Kind = doc.TEXT

    @property
    def difference(self) -> float | None:
        """B less A; None where one is no number, or never ends."""
        if isinstance(self.a, str) or isinstance(self.b, str) or self.a is None or self.b is None:
            return None
        less = self.b - self.a
        return less if math.isfinite(less) else None

    @property
    def ratio(self) -> float | None:
        """B over A; None where there is no difference, or A is nothing."""
        difference = self.difference
        if difference is None or isinstance(self.a, str) or not self.a:
            return None
        return 1 + difference / self.a


Group = tuple[str, tuple[Line, ...]]
"""A title, and the lines that belong together."""

_Rows = Iterable[tuple[str, str, doc.Kind, Callable[[Option], Figure]]]

_PLACE: _Rows = (
    ("id", "Plan", doc.TEXT, lambda o: o.plan.id),
    ("gpus", "GPUs", doc.TEXT, gpus),
    ("num_nodes", "Nodes", doc.COUNT, lambda o: o.plan.num_nodes),
    (
        "status",
        "Does the job",
        doc.TEXT,
        lambda o: f"no: {STATUS_OF_REMOVAL[o.removed_by[0]]}" if o.removed_by else "yes",
    ),
)
_ITERATION: _Rows = (
    ("iteration_s_p50", "Time of one, median", doc.DURATION, lambda o: o.estimate.iteration_s.p50),
    ("iteration_s_p10", "Time of one, p10", doc.DURATION, lambda o: o.estimate.iteration_s.p10),
    ("iteration_s_p90", "Time of one, p90", doc.DURATION, lambda o: o.estimate.iteration_s.p90),
    ("computing_s", "computing", doc.DURATION, lambda o: computing_s(o.estimate)),
)
_MEMORY: _Rows = (
    ("binds", "What binds", doc.TEXT, lambda o: o.estimate.binds.value),
    ("memory_bytes", "Memory needed", doc.BYTES, lambda o: o.estimate.memory_bytes),
    ("memory_limit_bytes", "Memory of a GPU", doc.BYTES, lambda o: o.estimate.memory_limit_bytes),
    ("fits_memory", "Fits", doc.TEXT, lambda o: _FITS[o.estimate.fits_memory]),
)
_TIME: _Rows = (
    ("iterations", "Iterations", doc.COUNT, lambda o: o.iterations),
    ("train_s_p50", "Training, median", doc.DURATION, lambda o: o.train_s.p50),
    ("wait_s_p50", "Wait, median", doc.DURATION, lambda o: None if o.wait_s is None else o.wait_s.p50),
    ("wait_s_p90", "Wait, p90", doc.DURATION, lambda o: None if o.wait_s is None else o.wait_s.p90),
    ("startup_s", "Start-up", doc.DURATION, lambda o: o.plan.startup_s),
    ("time_s_p50", "Until done, median", doc.DURATION, lambda o: o.time_s.p50),
    ("time_s_p90", "Until done, p90", doc.DURATION, lambda o: o.time_s.p90),
)
_RENT: _Rows = (
    ("usd_per_h", "Rent of an hour", doc.USD, lambda o: o.plan.usd_per_h),
    ("price", "Price", doc.TEXT, lambda o: None if o.plan.price is None else quote_text(o.plan.price)),
    ("price_source", "Price from", doc.TEXT, lambda o: _source(o)),
)
_COST: _Rows = (
    ("cost_usd_p50", "Cost, median", doc.USD, lambda o: _if_known(o, o.cost_usd.p50)),
    ("cost_usd_p90", "Cost, p90", doc.USD, lambda o: _if_known(o, o.cost_usd.p90)),
)
_RISK: _Rows = (
    ("p_within_budget", "Within the budget", PROBABILITY, lambda o: o.p_within_budget),
    ("p_within_deadline", "Within the deadline", PROBABILITY, lambda o: o.p_within_deadline),
    ("risk", "Risk", doc.TEXT, lambda o: sentence(o.risk)),
)


def groups_of(comparison: PlanComparison) -> Iterator[Group]:
    """All figures in the order in which they follow from each other."""
    both = comparison.a, comparison.b
    yield "Machine", tuple(_lines(both, _PLACE))
    yield "One iteration", (*_lines(both, _ITERATION), *_waits(both), *_lines(both, _MEMORY))
    yield "Time", tuple(_lines(both, _TIME))
    yield "Money", (*_lines(both, _RENT), *_causes(both), *_lines(both, _COST))
    odds = [line for line in _lines(both, _RISK) if (line.a, line.b) != (None, None)]
    yield "Odds and risk", (*_odds(comparison), *odds)
    yield "What decides", tuple(_whole(comparison))


def _lines(both: tuple[Option, Option], rows: _Rows) -> Iterator[Line]:
    a, b = both
    for key, name, kind, figure in rows:
        yield Line(key=key, name=name, a=figure(a), b=figure(b), kind=kind)


def _waits(both: tuple[Option, Option]) -> Iterator[Line]:
    a, b = (waits_s(option.estimate) for option in both)
    for name in a:
        yield Line(key=f"{name} (s)", name=name, a=a[name], b=b[name], kind=doc.DURATION)


def _causes(both: tuple[Option, Option]) -> Iterator[Line]:
    a, b = (option.cost_breakdown_usd for option in both)
    for name in {**a, **b}:
        yield Line(key=f"{name} (USD)", name=name, a=a.get(name, 0.0), b=b.get(name, 0.0), kind=doc.USD)


def _odds(comparison: PlanComparison) -> Iterator[Line]:
    pairs = {"cheaper": comparison.p_a_cheaper, "sooner": comparison.p_a_sooner}
    for name, p in pairs.items():
        if p is not None:
            yield Line(key=f"p_{name}", name=f"Is the {name} one", a=p, b=1 - p, kind=PROBABILITY)
    if (times := comparison.times_as_fast) is not None:
        span = f"{_times(times.p50)} x ({_times(times.p10)} to {_times(times.p90)})"
        yield Line(key="times_as_fast", name="Trains as fast", a="1 x", b=span)


def _whole(comparison: PlanComparison) -> Iterator[Line]:
    a, b = comparison.whole
    if a.change_s or b.change_s:
        yield Line(key="change_s", name="Changing the script", a=a.change_s, b=b.change_s, kind=doc.DURATION)
        yield Line(key="change_usd", name="Its cost", a=a.change_usd, b=b.change_usd, kind=doc.USD)
    yield Line(key="whole_s", name="Expected time in all", a=a.time_s, b=b.time_s, kind=doc.DURATION)
    yield Line(key="whole_usd", name="Expected cost in all", a=a.usd, b=b.usd, kind=doc.USD)
    hour = format_usd(comparison.worth.hour_usd)
    yield Line(key="total_usd", name=f"Both, an hour at {hour}", a=a.total_usd, b=b.total_usd, kind=doc.USD)


def _source(option: Option) -> str | None:
    offer = option.plan.offer
    return None if offer is None else f"{offer.source}, {offer.retrieved_at:%Y-%m-%d}"


def _if_known(option: Option, usd: float) -> float | None:
    return None if option.plan.usd_per_h is None else usd


_COLUMNS = (doc.Column("", wraps=False), *doc.columns("A", "B"), doc.Column("B beside A", wraps=False))
# Where all four would break words, the difference stands below B.
_NARROW = (doc.Column("", wraps=False), *doc.columns("A", "B, and beside A"))
_NARROW_NAME = 22
_SHEET = doc.columns("group", "line", "a", "b", "difference", "ratio")


def comparison_document(answer: CompareAnswer) -> doc.Document:
    """What decides, every line, and the notes on either plan."""
    comparison = answer.comparison
    groups = tuple(groups_of(comparison))
    return doc.Document(
        facts={**_facts(comparison, groups), **warnings_json(answer.warnings)},
        blocks=comparison_blocks(comparison),
        sheet=lambda: _sheet(groups),
        is_letter=True,
        title=f"{_name(comparison.a)} beside {_name(comparison.b)}",
    )


def comparison_blocks(comparison: PlanComparison) -> tuple[doc.Block, ...]:
    """What decides, every line, and the notes on either plan."""
    groups = tuple(groups_of(comparison))
    return _headline(comparison.verdict), _table(groups), *_notes(comparison)


def _headline(finding: Finding) -> doc.Section:
    text = sentence(finding)
    return doc.Section(f"{text[:1].upper()}{text[1:]}.", ())


def _name(option: Option) -> str:
    return f"{gpus(option)}, {where(option)}"


def _table(groups: Sequence[Group]) -> doc.Table:
    return doc.Table(
        columns=_COLUMNS,
        rows=tuple(_rows(groups, is_narrow=False)),
        narrow=(doc.Table(columns=_NARROW, rows=tuple(_rows(groups, is_narrow=True))),),
    )


def _rows(groups: Iterable[Group], *, is_narrow: bool) -> Iterator[doc.Row]:
    for title, lines in groups:
        yield doc.Row((title, *[""] * (2 if is_narrow else 3)), doc.Tone.BEST)
        for line in lines:
            (a,), (b,) = doc.cell_lines(line.a, line.kind), doc.cell_lines(line.b, line.kind)
            beside = _beside(line)
            if is_narrow:
                below = (beside,) if beside and line.difference else ()
                yield doc.Row((_in_lines(line.name), _at_slashes(a), (*_at_slashes(b), *below)))
            else:
                yield doc.Row((f"  {line.name}", a, b, beside))


def _in_lines(name: str) -> tuple[str, ...]:
    return tuple(textwrap.wrap(name, _NARROW_NAME, initial_indent="  ", subsequent_indent="    "))


def _at_slashes(text: str) -> tuple[str, ...]:
    """An id of a plan in two lines: ``aws/p4d.24xlarge/`` and ``us-east-1/spot``."""
    *first, last = text.split("/", 2)
    return ("/".join((*first, "")), last) if len(first) == 2 else (text,)


def _beside(line: Line) -> str:
    """``+1 h 5 min (1.46 x)``; empty for words that differ, and for what never ends."""
    if line.a == line.b:
        return "same"
    difference, ratio = line.difference, line.ratio
    if difference is None:
        return ""
    signed = format_signed(difference, line.kind.words)
    return signed if ratio is None or math.isinf(ratio) else f"{signed} ({_times(ratio)} x)"


def _times(ratio: float) -> str:
    """Two decimals; below 0.1, where these would be one digit or none, two digits."""
    return f"{ratio:.2f}" if not ratio or abs(round(ratio, 2)) >= 0.1 else f"{ratio:.2g}"


def _notes(comparison: PlanComparison) -> Iterator[doc.Section]:
    for name, option in (("A", comparison.a), ("B", comparison.b)):
        changes = [f"to change: {text}" for text in sentences(option.script_changes)]
        if notes := (*changes, *sentences(option.reasons)):
            yield doc.Section(f"Notes on {name}, {_name(option)}", notes)


def _sheet(groups: Iterable[Group]) -> doc.Table:
    pairs = ((title, line) for title, lines in groups for line in lines)
    cells = ((title, one.key, one.a, one.b, one.difference, one.ratio) for title, one in pairs)
    rows = (doc.Row(tuple("" if cell is None else str(cell) for cell in row)) for row in cells)
    return doc.Table(columns=_SHEET, rows=tuple(rows))


def _facts(comparison: PlanComparison, groups: Iterable[Group]) -> Mapping[str, object]:
    """``advisor compare --format json``, see docs/json.md."""
    return {
        "a": option_alone(comparison.a, comparison.worth),
        "b": option_alone(comparison.b, comparison.worth),
        "lines": [
            {"group": title, "line": line.key, **doc.facts_of(line, "a b difference ratio")}
            for title, lines in groups
            for line in lines
        ],
        **doc.facts_of(comparison, "p_a_cheaper p_a_sooner times_as_fast"),
        "value_of_time_usd_per_h": comparison.worth.hour_usd,
        "even_usd_per_h": comparison.even_usd_per_h,
        "whole": {name: asdict(whole) for name, whole in zip(("a", "b"), comparison.whole, strict=True)},
        **told("verdict", comparison.verdict),
    }


MOST_MACHINES, MOST_PARTS = 8, 8
# What is below it is no reason for anything.
_LEAST_SHARE = 0.005
_MACHINES = (
    doc.Column("GPUs, and where"),
    *doc.columns(("Time of a run", doc.DURATION), ("Memory", doc.BYTES), wraps=False),
    *doc.columns(("Cost of a run", doc.USD), "Change", wraps=False),
)
_PARTS = (
    doc.Column("Operator"),
    *doc.columns("Part", ("Calls", doc.COUNT), ("Time of a run", doc.DURATION), "Change", wraps=False),
)
_SCRIPT = doc.columns("Script", "Before", "After")
_PART_SHEET = doc.columns("name", "phase", "base_calls", "head_calls", "base_s", "head_s")
# Figures of a trace that people change; the rest follows from them or from the machine that profiled it.
_CHANGEABLE = (
    "batch_size", "samples_per_epoch", "iterations_per_epoch", "accumulation", "num_workers", "amp_dtype",
    "tf32_matmul", "tf32_cudnn", "forward_ops", "backward_ops", "optimizer_ops", "flops", "parameter_bytes",
    "optimizer_bytes", "activation_bytes", "peak_bytes",
)  # fmt: skip


def diff_document(answer: DiffAnswer) -> doc.Document:
    """What a change of a script costs."""
    findings = tuple(change_findings(answer.change))
    blocks: list[doc.Block] = [_headline(one) for one in findings]
    blocks += _machines(answer.change.machines)
    blocks += _parts(answer)
    blocks += _script(answer.base, answer.head)
    return doc.Document(
        facts={**_diff_facts(answer), **all_told("summary", findings)},
        blocks=tuple(blocks),
        sheet=lambda: _part_sheet(answer.parts),
        is_letter=True,
        title=f"What a change of {answer.head.script or 'this script'} costs",
    )


def _machines(machines: Sequence[MachineChange]) -> Iterator[doc.Table]:
    if machines:
        rows = tuple(map(_machine_row, machines[:MOST_MACHINES]))
        yield doc.Table(columns=_MACHINES, rows=rows, caption="Machines, before and after")


def _machine_row(change: MachineChange) -> doc.Row:
    base, head = change.base, change.head
    either = head or base
    assert either is not None, "a machine of neither answer has no row"  # noqa: S101
    cells: tuple[doc.Cell, ...] = (
        (gpus(either), *dict.fromkeys(where(option) for option in (base, head) if option is not None)),
        tuple(None if option is None else option.time_s.p50 for option in (base, head)),
        tuple(_memory(option) for option in (base, head)),
        tuple(map(_cost, (base, head))),
        _relative(base, head),
    )
    return doc.Row(cells, doc.Tone.PLAIN if head is not None and head.feasible else doc.Tone.FAINT)


def _memory(option: Option | None) -> doc.Value:
    """Of one GPU; the column of costs says where it is too much."""
    if option is None or option.estimate.memory_bytes is None:
        return None if option is None else "unknown"
    return format_bytes(option.estimate.memory_bytes)


def _cost(option: Option | None) -> doc.Value:
    """A median alone, or why there is none."""
    if option is None:
        return None
    if not option.feasible:
        return STATUS_OF_REMOVAL[option.removed_by[0]]
    return "unknown" if option.plan.usd_per_h is None else option.cost_usd.p50


def _relative(base: Option | None, head: Option | None) -> doc.Cell:
    """Of the cost where both show one, else of the time."""
    if base is None or head is None:
        return None
    if base.feasible and head.feasible and base.plan.usd_per_h and head.plan.usd_per_h:
        return format_change(head.cost_usd.p50 / base.cost_usd.p50 - 1)
    # A spot machine that is always reclaimed first never ends the job.
    relative = head.time_s.p50 / base.time_s.p50 - 1
    return f"{format_change(relative)} time" if math.isfinite(relative) else None


def _parts(answer: DiffAnswer) -> Iterator[doc.Table]:
    """The largest changes; the rest is one row, so that the table adds up to the change."""
    base = answer.change.base
    whole_s = sum(part.base_s for part in answer.parts)
    least_s = _LEAST_SHARE * whole_s
    shown = [part for part in answer.parts if abs(part.more_s) >= least_s][:MOST_PARTS]
    rest = answer.parts[len(shown) :]
    is_nothing = not shown and abs(sum(part.more_s for part in rest)) < least_s
    if base is None or is_nothing:
        return
    rows = [doc.Row(_part_cells(part, whole_s)) for part in shown]
    if rest:
        base_s, head_s = sum(part.base_s for part in rest), sum(part.head_s for part in rest)
        rows.append(doc.Row(("all others", "", None, (base_s, head_s), _more(head_s - base_s, whole_s))))
    yield doc.Table(columns=_PARTS, rows=tuple(rows), caption=f"Which operators did it, on {gpus(base)}")


def _part_cells(part: PartChange, whole_s: float) -> tuple[doc.Cell, ...]:
    return (
        part.name,
        "wait" if part.phase is None else part.phase.value,
        None if part.phase is None else (part.base_calls, part.head_calls),
        (part.base_s, part.head_s),
        _more(part.more_s, whole_s),
    )


def _more(more_s: float, whole_s: float) -> str:
    return f"{format_signed(more_s, format_duration)} ({format_change(more_s / whole_s)} of the run)"


def _script(base: Trace, head: Trace) -> Iterator[doc.Table]:
    before, after = trace_texts(base), trace_texts(head)
    rows = [doc.Row((name, before[name], after[name])) for name in _CHANGEABLE if before[name] != after[name]]
    if rows:
        yield doc.Table(columns=_SCRIPT, rows=tuple(rows), caption="What differs in an iteration")


def _part_sheet(parts: Sequence[PartChange]) -> doc.Table:
    cells = ((p.name, p.phase or "", p.base_calls, p.head_calls, p.base_s, p.head_s) for p in parts)
    return doc.Table(columns=_PART_SHEET, rows=tuple(doc.Row(tuple(map(str, row))) for row in cells))


# --- JSON ------------------------------------------------------------------------------------------


def _diff_facts(answer: DiffAnswer) -> Mapping[str, object]:
    change = answer.change
    return {
        "base": summary(answer.base),
        "head": summary(answer.head),
        "change": {
            **doc.facts_of(change, "measure relative"),
            "base": _option_json(change.base),
            "same": _option_json(change.same),
            "head": _option_json(change.head),
        },
        "machines": [
            doc.facts_of(one, "gpu num_gpus")
            | {"base": _option_json(one.base), "head": _option_json(one.head)}
            for one in change.machines
        ],
        "operators": [{**asdict(part), "phase": part.phase and part.phase.value} for part in answer.parts],
        **warnings_json(answer.warnings),
    }


def _option_json(option: Option | None) -> Mapping[str, object] | None:
    if option is None:
        return None
    return {
        "id": option.plan.id,
        **doc.facts_of(option, "feasible removed_by iterations"),
        **doc.facts_of(option.estimate, "iteration_s memory_bytes fits_memory"),
        "time_s": asdict(option.time_s),
        "cost_usd": None if option.plan.usd_per_h is None else asdict(option.cost_usd),
    }
