"""The ledger: what was recommended, what really ran, and what that cost."""

from __future__ import annotations

import dataclasses
import math
import uuid
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, func, select

from advisor.core.errors import StoreError
from advisor.core.values import Market, Quantiles
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.transactions import insert_into, reading, writing

_RUNS = schema.runs.c
_RECOMMENDATIONS = schema.recommendations.c


def new_id() -> str:
    """An id that no other entry has, whoever made it."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A recommendation as it was given.

    Attributes:
        at: when, with a time zone.
        project: whose budget it is; "" without any.
        plan_id: of the recommended plan.
        market: None for machines that are not rented.
        time_s: wait, start-up and training, predicted.
        cost_usd: of all that, predicted.
    """

    id: str = field(default_factory=new_id)
    at: datetime
    project: str
    script: str
    plan_id: str
    provider: str
    gpu: str
    num_gpus: int
    market: Market | None
    time_s: Quantiles
    cost_usd: Quantiles
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that has ended.

    Attributes:
        recommendation_id: of the entry that it follows; None if nobody asked for advice.
        project: whose budget it was; "" without any.
        market: None for machines that are not rented.
        started_at: with a time zone.
        cost_usd: what was or will be billed for it.
    """

    id: str = field(default_factory=new_id)
    recommendation_id: str | None = None
    project: str
    script: str
    provider: str
    gpu: str
    num_gpus: int
    market: Market | None
    started_at: datetime
    duration_s: float
    cost_usd: float
    note: str = ""


def record_recommendation(store: Store, entry: LedgerEntry) -> str:
    """Keep a recommendation and return its id; keeping it again changes nothing.

    Raises:
        StoreError: a number or time cannot be true, or the database cannot be written.
    """
    time_s, cost_usd = entry.time_s, entry.cost_usd
    predicted = {
        "time_p50_s": time_s.p50,
        "time_p90_s": time_s.p90,
        "cost_p50_usd": cost_usd.p50,
        "cost_p90_usd": cost_usd.p90,
    }
    _check(f"the recommendation for {entry.script}", predicted)
    plain = {name: value for name, value in _fields(entry).items() if name not in ("time_s", "cost_usd")}
    with writing(store) as connection:
        _insert(connection, schema.recommendations, plain | predicted)
    return entry.id


def recommendations(store: Store, *, since: datetime, project: str | None = None) -> tuple[LedgerEntry, ...]:
    """Recommendations of one project or all from a time on, in order of time.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.recommendations).where(_RECOMMENDATIONS.at >= since)
    if project is not None:
        wanted = wanted.where(_RECOMMENDATIONS.project == project)
    with reading(store) as connection:
        rows = connection.execute(wanted.order_by(_RECOMMENDATIONS.at, _RECOMMENDATIONS.id))
        return tuple(map(_entry, rows.mappings()))


def find_recommendation(store: Store, entry_id: str) -> LedgerEntry | None:
    """The recommendation with this id.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.recommendations).where(_RECOMMENDATIONS.id == entry_id)
    with reading(store) as connection:
        return next(map(_entry, connection.execute(wanted).mappings()), None)


def recommendation_ids(store: Store) -> tuple[str, ...]:
    """Ids of all recommendations, the newest first.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(_RECOMMENDATIONS.id).order_by(_RECOMMENDATIONS.at.desc(), _RECOMMENDATIONS.id)
    with reading(store) as connection:
        return tuple(connection.execute(wanted).scalars())


def record_run(store: Store, run: Run) -> str:
    """Keep a run and return its id; keeping it again changes nothing.

    Raises:
        StoreError: a number or time cannot be true, or the database cannot be written.
    """
    _check(f"the run of {run.script}", {"duration_s": run.duration_s, "cost_usd": run.cost_usd})
    with writing(store) as connection:
        _insert(connection, schema.runs, _fields(run))
    return run.id


def find_run(store: Store, run_id: str) -> Run | None:
    """The run with this id.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.runs).where(_RUNS.id == run_id)
    with reading(store) as connection:
        return next((Run(**row) for row in connection.execute(wanted).mappings()), None)


def runs(store: Store, *, since: datetime, project: str | None = None) -> tuple[Run, ...]:
    """Runs of one project or all that started at a time or later, in order of time.

    Raises:
        StoreError: the database cannot be read.
    """
    wanted = select(schema.runs).where(_of_runs(since, project))
    with reading(store) as connection:
        rows = connection.execute(wanted.order_by(_RUNS.started_at, _RUNS.id))
        return tuple(Run(**row) for row in rows.mappings())


def spent_usd(store: Store, *, since: datetime, project: str | None = None) -> float:
    """What runs of one project or all cost that started at a time or later, in USD before tax.

    Raises:
        StoreError: the database cannot be read.
    """
    total = select(func.coalesce(func.sum(_RUNS.cost_usd), 0.0)).where(_of_runs(since, project))
    with reading(store) as connection:
        return float(connection.execute(total).scalar_one())


def _of_runs(since: datetime, project: str | None) -> ColumnElement[bool]:
    begun = _RUNS.started_at >= since
    return begun if project is None else begun & (_RUNS.project == project)


def _insert(connection: Connection, table: Table, values: dict[str, object]) -> None:
    connection.execute(insert_into(connection, table).values(values).on_conflict_do_nothing())


def _fields(entry: LedgerEntry | Run) -> dict[str, object]:
    return {item.name: getattr(entry, item.name) for item in dataclasses.fields(entry)}


def _check(what: str, numbers: dict[str, float]) -> None:
    for name, number in numbers.items():
        if not (number >= 0 and math.isfinite(number)):
            raise StoreError(f"{what} has a {name} of {number!r}: it must be 0 or more. Nothing was kept.")


def _entry(row: RowMapping) -> LedgerEntry:
    values = dict(row)
    time_s = Quantiles(p50=values.pop("time_p50_s"), p90=values.pop("time_p90_s"))
    cost_usd = Quantiles(p50=values.pop("cost_p50_usd"), p90=values.pop("cost_p90_usd"))
    return LedgerEntry(**values, time_s=time_s, cost_usd=cost_usd)
