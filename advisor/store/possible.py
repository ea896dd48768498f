"""Which rows of the ledger can be read and be true; others come from another version, or from somebody else.

One such row must not keep a whole report from being written. SQLite keeps whatever it is given in any column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Double,
    Integer,
    Select,
    Table,
    Text,
    and_,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from advisor.core.limits import RUN_BOUNDS, why_out_of_bounds
from advisor.core.values import CostKind, Market, RunStatus
from advisor.store import schema

_NAMES: Mapping[str, type[StrEnum]] = {"status": RunStatus, "cost_kind": CostKind, "market": Market}
ANY_NUMBER = (0.0, 1.7e308)
_MOST_SHOWN = 40


class _IsTime(FunctionElement[bool]):
    """Whether a column holds a moment."""

    type = Boolean()
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


def _times(table: Table) -> Iterable[ColumnElement[datetime]]:
    return (column for column in table.c if isinstance(column.type, schema.UtcTime))


def _numbers(table: Table) -> Iterable[str]:
    return (column.name for column in table.c if isinstance(column.type, Double | Integer))


def _are_times(table: Table) -> ColumnElement[bool]:
    return and_(*(or_(column.is_(None), _IsTime(column)) for column in _times(table)))


def _are_names(table: Table) -> ColumnElement[bool]:
    """Names are compared as texts: the column's own type would refuse to give them."""
    texts = {type_coerce(table.c[name], Text): names for name, names in _NAMES.items() if name in table.c}
    return and_(*(or_(text.is_(None), text.in_(map(str, names))) for text, names in texts.items()))


def _are_within(table: Table, bounds: Mapping[str, tuple[float, float]]) -> ColumnElement[bool]:
    return and_(*(or_(table.c[name].is_(None), table.c[name].between(*of)) for name, of in bounds.items()))


RUN_HAS_TIMES = _are_times(schema.runs)
RUN_IS_POSSIBLE = RUN_HAS_TIMES & _are_names(schema.runs) & _are_within(schema.runs, RUN_BOUNDS)
RECOMMENDATION_IS_POSSIBLE = (
    _are_times(schema.recommendations)
    & _are_names(schema.recommendations)
    & _are_within(schema.recommendations, dict.fromkeys(_numbers(schema.recommendations), ANY_NUMBER))
)


def raw_runs() -> Select[tuple[object, ...]]:
    """All columns of runs as they lie there."""
    texts = {column.name for column in _times(schema.runs)} | _NAMES.keys()
    return select(
        *(type_coerce(one, Text).label(one.name) if one.name in texts else one for one in schema.runs.c)
    )


def first_fault(row: Mapping[str, object]) -> str:
    """What cannot be true of a raw row, in words that name the column."""
    for name, bounds in RUN_BOUNDS.items():
        why = None if row[name] is None else why_out_of_bounds(name, row[name], *bounds)
        if why is not None:
            return why
    for name, names in _NAMES.items():
        if row[name] is not None and row[name] not in set(names):
            return f"{name} is {_shown(row[name])}: it must be one of {', '.join(map(str, names))}"
    at = " or ".join(f"{one.name} ({_shown(row[one.name])})" for one in _times(schema.runs))
    return f"{at} is no time such as 2026-11-01 09:30:00.000000"


def _shown(value: object) -> str:
    return repr(value)[:_MOST_SHOWN]
