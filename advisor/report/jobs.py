"""Recommendations of the ledger: a list of them, and one with its frontier and the runs that followed it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from advisor.core.units import format_duration, format_duration_short, format_usd
from advisor.core.values import Quantiles
from advisor.report.document import (
    DURATION,
    SHORT_DURATION,
    USD,
    Axis,
    Block,
    Chart,
    Column,
    Detail,
    Document,
    Fact,
    Lines,
    Row,
    Section,
    Series,
    Table,
    Tone,
    all_facts_of,
    columns,
)
from advisor.report.option_charts import MOST_SERIES, TIME_OVER_COST, frontier_line, least_drawn_usd
from advisor.report.runs import runs_document
from advisor.store.ledger import LedgerEntry, OfferedOption, Run

NONE_YET = "No recommendation is recorded yet: `advisor recommend --record` keeps one."
_COLUMNS = (
    *columns("Script", "Project", wraps=False),
    Column("Take"),
    Column("Time (p90)", SHORT_DURATION, wraps=False),
    Column("Cost (p90)", USD, wraps=False),
    Column("Asked (UTC)", wraps=False),
)


def jobs_document(entries: Sequence[LedgerEntry]) -> Document:
    """A row for each recommendation in the given order."""
    rows = tuple(
        Row(
            (
                one.script,
                one.project or None,
                _take(one),
                one.time_s,
                one.cost_usd,
                f"{one.at:%Y-%m-%d %H:%M}",
            )
        )
        for one in entries
    )
    table = Table(columns=_COLUMNS, rows=rows)
    return Document(
        facts={"jobs": [_job_json(one) for one in entries], "warnings": []},
        blocks=(table,) if rows else (Lines((NONE_YET,)),),
        sheet=table,
        title="Jobs",
    )


def job_document(entry: LedgerEntry, runs: Sequence[Run]) -> Document:
    """What was offered, as a chart of time over cost, and what the runs that followed took."""
    return Document(
        facts={
            "job": _job_json(entry),
            "options": [asdict(one) for one in entry.options],
            "runs": list(map(all_facts_of, runs)),
            "warnings": [],
        },
        blocks=tuple(_job_blocks(entry, runs)),
        title=f"{entry.script}: {_take(entry)}",
    )


def _job_json(entry: LedgerEntry) -> dict[str, object]:
    """All but the lists, which may be long."""
    facts = all_facts_of(entry)
    return {name: value for name, value in facts.items() if name not in ("options", "alternatives")}


def _take(entry: LedgerEntry) -> str:
    return f"{entry.num_gpus} x {entry.gpu}, {' '.join(filter(None, (entry.provider, entry.market)))}"


def _job_blocks(entry: LedgerEntry, runs: Sequence[Run]) -> Iterator[Block]:
    yield Section("Recommended", tuple(_facts(entry)))
    ends = [one for one in entry.options if one.time_p50_s > 0]
    yield frontier_chart(ends, entry.plan_id) if ends else Lines(("What else was offered is not kept.",))
    if runs:
        yield Section("Predicted against actual", tuple(_against(entry, run) for run in runs))
        yield from runs_document(runs).blocks


def _facts(entry: LedgerEntry) -> Iterator[Fact]:
    yield Fact("Plan", entry.plan_id)
    for name, (p50, p90) in {"Time": _time(entry.time_s), "Cost": _cost(entry.cost_usd)}.items():
        yield Fact(name, p50, f"90 % chance of staying under {p90}")
    if entry.budget_usd is not None:
        yield Fact("Budget", format_usd(entry.budget_usd))
    if entry.deadline_s is not None:
        yield Fact("Deadline", format_duration(entry.deadline_s))
    if entry.command:
        yield Fact("Asked by", entry.command)


def _time(time_s: Quantiles) -> tuple[str, str]:
    return format_duration(time_s.p50), format_duration(time_s.p90)


def _cost(cost_usd: Quantiles) -> tuple[str, str]:
    return format_usd(cost_usd.p50), format_usd(cost_usd.p90)


def _against(entry: LedgerEntry, run: Run) -> Fact:
    took = "an unknown time" if run.duration_s is None else DURATION.words(run.duration_s)
    cost = "an unknown cost" if run.cost_usd is None else format_usd(run.cost_usd)
    predicted = f"predicted: {_time(entry.time_s)[0]}, {_cost(entry.cost_usd)[0]}"
    return Fact(f"{run.started_at:%Y-%m-%d %H:%M}", f"{took}, {cost}", predicted)


def frontier_chart(options: Sequence[OfferedOption], chosen: str) -> Chart:
    """Median time over median cost; the frontier's options have names, as many as a reader tells apart."""
    least_usd = least_drawn_usd(one.cost_p50_usd for one in options)
    named = [one for one in options if one.on_frontier or one.plan_id == chosen]
    best = sorted(named, key=lambda one: one.plan_id != chosen)[:MOST_SERIES]
    others = [one for one in options if one not in best]
    return Chart(
        title=TIME_OVER_COST,
        x=Axis(USD, "free" if any(one.cost_p50_usd <= least_usd for one in options) else None, "Cost"),
        y=Axis(SHORT_DURATION, title="Time"),
        is_log=True,
        series=tuple(_named(one, least_usd, is_chosen=one.plan_id == chosen) for one in best),
        others=tuple(_point(one, least_usd) for one in others),
        others_label=f"{len(others)} more" if others else "",
        others_details=tuple(Detail(label=_hover(one)) for one in others),
        guides=frontier_line(_point(one, least_usd) for one in options if one.on_frontier),
    )


def _named(option: OfferedOption, least_usd: float, *, is_chosen: bool) -> Series:
    figures = f"{format_duration_short(option.time_p50_s)}  {format_usd(option.cost_p50_usd)}"
    label = (
        f"{figures}{', recommended' if is_chosen else ''}: {option.num_gpus} x {option.gpu}, {option.plan_id}"
    )
    tone = Tone.BEST if is_chosen else Tone.GOOD
    return Series(label, (_point(option, least_usd),), (Detail(label=_hover(option)),), tone)


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
