"""The ledger: what was recommended, what really ran, and what that cost.

Rows that cannot be read or be true come from another version, or from someone else: one such row must not
keep a whole report from being written. SQLite keeps whatever it is given in any column.
"""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from advisor.core.errors import StoreError
from advisor.core.files import as_text
from advisor.core.limits import RUN_BOUNDS, why_out_of_bounds
from advisor.core.values import CostKind, Interval, Market, Quantiles, RunStatus
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, selected, writing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NAMES: Mapping[str, type[StrEnum]] = {"status": RunStatus, "cost_kind": CostKind, "market": Market}
ANY_NUMBER = (0.0, 1.7e308)
_MOST_SHOWN = 40


class _IsTime(FunctionElement[bool]):
    type = sa.Boolean()
    name = "is_time"
    inherit_cache = True


@compiles(_IsTime)
def _is_typed(_element: _IsTime, _compiler: SQLCompiler, **_options: object) -> str:
    """PostgreSQL lets nothing else into the column."""
    return "TRUE"


@compiles(_IsTime, "sqlite")
def _is_moment(element: _IsTime, compiler: SQLCompiler, **options: object) -> str:
    """SQLite has only text, and turns 30 February into 2 March where it is asked for a time."""
    at = compiler.process(element.clauses, **options)
    fraction = f"substr({at}, 20)"
    return (
        f"(coalesce(datetime(substr({at}, 1, 19), '+0 days') = substr({at}, 1, 19), 0)"
        f" AND substr({at}, 1, 4) >= '0001'"
        f" AND ({fraction} = '' OR ({fraction} GLOB '.[0-9]*' AND substr({at}, 21) NOT GLOB '*[^0-9]*')))"
    )


def _times(table: sa.Table) -> list[sa.Column[datetime]]:
    return [column for column in table.c if isinstance(column.type, schema.UtcTime)]


def _are_times(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(*(sa.or_(column.is_(None), _IsTime(column)) for column in _times(table)))


def _is_possible(table: sa.Table, bounds: Mapping[str, tuple[float, float]]) -> sa.ColumnElement[bool]:
    """Names are compared as texts: the column's own type would refuse to give them."""
    names = {name: map(str, of) for name, of in _NAMES.items() if name in table.c}
    texts = {name: sa.type_coerce(table.c[name], sa.Text) for name in names}
    return sa.and_(
        _are_times(table),
        *(sa.or_(text.is_(None), text.in_(names[name])) for name, text in texts.items()),
        *(sa.or_(table.c[name].is_(None), table.c[name].between(*of)) for name, of in bounds.items()),
    )


RUN_IS_POSSIBLE = _is_possible(schema.runs, RUN_BOUNDS)
RECOMMENDATION_IS_POSSIBLE = _is_possible(
    schema.recommendations,
    {
        one.name: ANY_NUMBER
        for one in schema.recommendations.c
        if isinstance(one.type, sa.Double | sa.Integer)
    },
)


def raw_runs() -> sa.Select[tuple[object, ...]]:
    """All columns of runs as they lie there."""
    texts = {column.name for column in _times(schema.runs)} | _NAMES.keys()
    return sa.select(
        *(sa.type_coerce(one, sa.Text).label(one.name) if one.name in texts else one for one in schema.runs.c)
    )


def first_fault(row: Mapping[str, object]) -> str:
    """What cannot be true of a raw row, in words that name the column."""
    for name, bounds in RUN_BOUNDS.items():
        why = None if row[name] is None else why_out_of_bounds(name, row[name], *bounds)
        if why is not None:
            return why
    for name, names in _NAMES.items():
        if row[name] is not None and row[name] not in set(names):
            shown = repr(row[name])[:_MOST_SHOWN]
            return f"{name} is {shown}: it must be one of {', '.join(map(str, names))}"
    at = " or ".join(f"{one.name} ({repr(row[one.name])[:_MOST_SHOWN]})" for one in _times(schema.runs))
    return f"{at} is no time such as 2026-11-01 09:30:00.000000"


_RUNS = schema.runs.c
_RECOMMENDATIONS = schema.recommendations.c
_INTERVALS = ("iteration_s", "step_s")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:@+=-]{0,127}")
_MOST_TEXT = 10_000


def new_id() -> str:
    """A new id, different from all others."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """How long the job takes on so many GPUs of one kind, at any provider: without waits and prices."""

    gpu: str
    num_gpus: int
    iteration_p50_s: float
    """Of one optimizer step."""
    train_p50_s: float
    """Of the whole job, interruptions of its market included."""
    train_p90_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedOption:
    """An option as it stood in the answer; times and costs as of `LedgerEntry`."""

    plan_id: str
    provider: str
    gpu: str
    num_gpus: int
    num_nodes: int
    market: str | None
    usd_per_h: float | None
    time_p50_s: float
    time_p90_s: float
    cost_p50_usd: float
    cost_p90_usd: float
    on_frontier: bool
    num_changes: int | None = None
    """Of the script, of more than a line; None from older versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A recommendation as it was given; None is not known, as of entries that older versions made."""

    id: str = field(default_factory=new_id)
    at: datetime
    """When, with a time zone."""
    project: str
    """Whose budget it is; "" without any."""
    script: str
    plan_id: str
    """Of the recommended plan."""
    provider: str
    gpu: str
    num_gpus: int
    market: Market | None
    """None for machines that are not rented."""
    time_s: Quantiles
    """Wait, start-up and training, predicted."""
    cost_usd: Quantiles
    """Of all that, predicted."""
    note: str = ""
    instance_type: str | None = None
    """None also for machines that are not rented, as is ``region``."""
    region: str | None = None
    command: str | None = None
    """The command line that asks the same question again, without secrets."""
    budget_usd: float | None = None
    deadline_s: float | None = None
    usd_per_h: float | None = None
    """Of the whole plan; None also for a machine without a configured cost."""
    num_iterations: int | None = None
    """Optimizer steps of the whole job on the recommended plan."""
    iteration_s: Interval | None = None
    """Of one of them, as it was answered."""
    uncorrected_p50_s: float | None = None
    """The median of one of them, before receipts of earlier runs corrected it."""
    alternatives: tuple[Alternative, ...] = ()
    """The job on other GPUs, the cheapest first."""
    num_nodes: int | None = None
    """Machines that train together, each with an equal part of the GPUs."""
    options: tuple[OfferedOption, ...] = ()
    """The frontier of the answer and the cheapest others; none from older versions."""

    def __post_init__(self) -> None:
        """Make names of other bytes than UTF-8 text."""
        _make_text(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that has ended; None is not known."""

    id: str = field(default_factory=new_id)
    recommendation_id: str | None = None
    """Of the entry that it follows; None if there is none."""
    project: str
    """Whose budget it was; "" without any."""
    script: str
    provider: str
    """A cloud, a cluster or ``local``; "" if unknown."""
    gpu: str
    """"" with ``num_gpus`` 0 where there was none."""
    num_gpus: int
    market: Market | None
    """None also for machines that are not rented, as are instance type, region and zone."""
    started_at: datetime
    """With a time zone."""
    duration_s: float | None
    cost_usd: float | None
    """Before tax."""
    note: str = ""
    instance_type: str | None = None
    region: str | None = None
    zone: str | None = None
    user: str = ""
    """Login name of who ran it; "" if not known."""
    status: RunStatus = RunStatus.FINISHED
    exit_code: int | None = None
    """Of the command; minus the signal's number where one ended it."""
    num_steps: int | None = None
    """Optimizer steps that were seen."""
    step_s: Interval | None = None
    """Times of these steps, as quantiles."""
    cost_kind: CostKind | None = None
    """None where the cost is."""
    usd_per_h: float | None = None
    """The price of the GPUs that it had, behind an estimated cost."""
    price_retrieved_at: datetime | None = None
    """When that price was true."""
    num_nodes: int | None = None
    """Machines that trained together."""
    gpu_busy_share: float | None = None
    """Of the time in which some kernel ran, over all its GPUs."""
    gpu_mean_w: float | None = None
    """That one GPU drew."""
    gpu_mean_clock_hz: float | None = None
    """Of its multiprocessors."""
    gpu_peak_bytes: int | None = None
    """Of memory, on the fullest GPU."""

    def __post_init__(self) -> None:
        """Make names of other bytes than UTF-8 text."""
        _make_text(self)


_LISTS: Mapping[str, type[DataclassInstance]] = {"alternatives": Alternative, "options": OfferedOption}


def _make_text(entry: LedgerEntry | Run) -> None:
    for item in dataclasses.fields(entry):
        value = getattr(entry, item.name)
        if type(value) is str and not value.isascii():
            object.__setattr__(entry, item.name, as_text(value))


def why_impossible(run: Run) -> str | None:
    """What cannot be true of a run, or be its name, in words that name the field; None if nothing is.

    Called before runs are entered: ids become names of files, and one absurd number would spoil every sum.
    """
    for name in ("id", "recommendation_id"):
        value = getattr(run, name)
        if value is not None and not _ID.fullmatch(value):
            return (
                f"{name} is {value[:40]!r}: write 1 to 128 letters, digits and . _ : @ + = - and begin with a"
                " letter or digit"
            )
    for item in dataclasses.fields(run):
        value = getattr(run, item.name)
        if isinstance(value, str) and (len(value) > _MOST_TEXT or "\0" in value):
            return f"{item.name} has {len(value):,} characters: at most {_MOST_TEXT:,}, and none is NUL"
    for name, value in _columns(run).items():
        if (
            name in RUN_BOUNDS
            and value is not None
            and (why := why_out_of_bounds(name, value, *RUN_BOUNDS[name]))
        ):
            return why
    if (run.cost_usd is None) != (run.cost_kind is None):
        return "cost_usd is given without cost_kind, or the reverse"
    return None


def record_recommendation(store: Store, entry: LedgerEntry) -> str:
    """Keep a recommendation and return its id; keeping it again changes nothing.

    Raises StoreError: a number or time cannot be true, or the database cannot be written.
    """
    for name, value in _columns(entry).items():
        why = why_out_of_bounds(name, value, *ANY_NUMBER) if isinstance(value, int | float) else None
        if why is not None:
            raise StoreError(f"the recommendation for {entry.script[:100]}: {why}. Nothing was kept.")
    return _record(store, schema.recommendations, entry)


def recommendations(store: Store, *, since: datetime, project: str | None = None) -> tuple[LedgerEntry, ...]:
    """Recommendations of one project or all from a time on, in order of time."""
    wanted = sa.select(schema.recommendations).where(_RECOMMENDATIONS.at >= since, _is_of(project))
    return selected(store, wanted.order_by(_RECOMMENDATIONS.at, _RECOMMENDATIONS.id), _entry)


def newest_recommendations(store: Store, *, project: str | None = None, most: int) -> tuple[LedgerEntry, ...]:
    """The last recommendations of one project or all, the newest first, without what else was offered."""
    wanted = sa.select(*(one for one in _RECOMMENDATIONS if one.name not in _LISTS)).where(_is_of(project))
    ordered = wanted.order_by(_RECOMMENDATIONS.at.desc(), _RECOMMENDATIONS.id)
    return selected(store, ordered.limit(most), _entry)


def _is_of(project: str | None) -> sa.ColumnElement[bool]:
    is_possible = RECOMMENDATION_IS_POSSIBLE
    return is_possible if project is None else is_possible & (_RECOMMENDATIONS.project == project)


def runs_of_recommendation(store: Store, entry_id: str) -> tuple[Run, ...]:
    """Runs that followed a recommendation, in order of time."""
    return _runs_in_order(store, (_RUNS.recommendation_id == entry_id) & RUN_IS_POSSIBLE)


def impossible_recommendations(store: Store) -> tuple[str, ...]:
    """Recommendations that cannot be true, and are left out as if they had never been given: a line each."""
    wanted = sa.select(_RECOMMENDATIONS.id).where(sa.not_(RECOMMENDATION_IS_POSSIBLE))
    ids = selected(store, wanted.order_by(_RECOMMENDATIONS.id), lambda row: str(row["id"])[:40])
    return tuple(f"the recommendation {name}: a time, name or number is none" for name in ids)


def find_recommendation(store: Store, entry_id: str) -> LedgerEntry | None:
    """The recommendation with this id."""
    wanted = sa.select(schema.recommendations).where(_RECOMMENDATIONS.id == entry_id, _is_of(None))
    return next(iter(selected(store, wanted, _entry)), None)


def recommendation_ids(store: Store) -> tuple[str, ...]:
    """Ids of all recommendations, the newest first."""
    wanted = sa.select(_RECOMMENDATIONS.id).order_by(_RECOMMENDATIONS.at.desc(), _RECOMMENDATIONS.id)
    return selected(store, wanted, lambda row: row["id"])


def project_names(store: Store) -> frozenset[str]:
    """Projects of all runs and recommendations; "" is the one of those without any."""
    wanted = sa.select(_RUNS.project).union(sa.select(_RECOMMENDATIONS.project))
    return frozenset(selected(store, wanted, lambda row: row["project"]))


def record_run(store: Store, run: Run) -> str:
    """Keep a run and return its id; keeping it again changes nothing, but its end replaces that it was lost.

    Raises StoreError: a number or time cannot be true, or the database cannot be written.
    """
    if why := why_impossible(run):
        raise StoreError(f"the run of {run.script[:100]} cannot be recorded: {why}. Nothing was kept.")
    return _record(store, schema.runs, run)


def find_run(store: Store, run_id: str) -> Run | None:
    """The run with this id."""
    return next(iter(_runs_in_order(store, _RUNS.id == run_id)), None)


def runs(store: Store, *, since: datetime, project: str | None = None) -> tuple[Run, ...]:
    """Runs of one project or all that started at a time or later, in order of time.

    Those that cannot be true are left out: ``impossible_runs`` names them.
    """
    return _runs_in_order(store, _of_runs(since, project) & RUN_IS_POSSIBLE)


def impossible_runs(store: Store, *, since: datetime, project: str | None = None) -> tuple[str, ...]:
    """What cannot be true of recorded runs that `runs` leaves out, each with the run's id."""
    begun = sa.or_(_of_runs(since, project), _of_runs(None, project) & sa.not_(_are_times(schema.runs)))
    wanted = raw_runs().where(begun & sa.not_(RUN_IS_POSSIBLE)).order_by(_RUNS.id)
    return selected(store, wanted, lambda row: f"the run {str(row['id'])[:40]}: {first_fault(dict(row))}")


def _runs_in_order(store: Store, which: sa.ColumnElement[bool]) -> tuple[Run, ...]:
    return selected(store, sa.select(schema.runs).where(which).order_by(_RUNS.started_at, _RUNS.id), _run)


def _of_runs(since: datetime | None, project: str | None) -> sa.ColumnElement[bool]:
    begun = sa.true() if since is None else _RUNS.started_at >= since
    return begun if project is None else begun & (_RUNS.project == project)


def _record(store: Store, table: sa.Table, entry: LedgerEntry | Run) -> str:
    """Keep the first row; a run that was lost may be replaced by its end."""
    columns = _columns(entry)
    with writing(store) as connection:
        new = insert_into(connection, table).values(columns)
        was_lost = _RUNS.status == RunStatus.LOST.value
        connection.execute(
            new.on_conflict_do_update(index_elements=[_RUNS.id], set_=columns, where=was_lost)
            if table is schema.runs
            else new.on_conflict_do_nothing()
        )
    return entry.id


def _columns(entry: LedgerEntry | Run) -> dict[str, object]:
    columns: dict[str, object] = {}
    for item in dataclasses.fields(entry):
        value = getattr(entry, item.name)
        if isinstance(value, Quantiles | Interval) or item.name in _INTERVALS:
            names = _quantile_columns(item.name)
            columns |= {column: getattr(value, quantile, None) for quantile, column in names.items()}
        elif item.name in _LISTS:
            columns[item.name] = json.dumps([dataclasses.asdict(one) for one in value])
        else:
            # A driver might take a member by its name.
            columns[item.name] = value.value if isinstance(value, RunStatus | CostKind) else value
    return columns


def _entry(row: sa.RowMapping) -> LedgerEntry:
    values = {name: value for name, value in row.items() if name in LedgerEntry.__dataclass_fields__}
    values |= {name: _quantiles(row, name) for name in ("time_s", "cost_usd", "iteration_s")}
    for name, kind in _LISTS.items():
        values[name] = ()
        # None are known of where the text is damaged, or of another version.
        with suppress(ValueError, TypeError):
            values[name] = tuple(kind(**one) for one in json.loads(row.get(name, "[]")))
    return LedgerEntry(**values)


def _run(row: sa.RowMapping) -> Run:
    values = {name: value for name, value in row.items() if name in Run.__dataclass_fields__}
    kind = row["cost_kind"]
    values |= {"status": RunStatus(row["status"]), "cost_kind": None if kind is None else CostKind(kind)}
    return Run(**values | {"step_s": _quantiles(row, "step_s")})


def _quantiles(row: sa.RowMapping, name: str) -> Quantiles | Interval | None:
    values = {quantile: row[column] for quantile, column in _quantile_columns(name).items()}
    if None in values.values():
        return None
    return Interval(**values) if name in _INTERVALS else Quantiles(**values)


def _quantile_columns(name: str) -> dict[str, str]:
    """Columns by quantile: ``time_p50_s`` and ``time_p90_s`` of ``time_s``."""
    stem, _, unit = name.rpartition("_")
    quantiles = [item.name for item in dataclasses.fields(Interval if name in _INTERVALS else Quantiles)]
    return {quantile: f"{stem}_{quantile}_{unit}" for quantile in quantiles}
