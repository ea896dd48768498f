"""What the service shows: each view is a document that a page and the JSON API are both written from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema

from advisor import __version__
from advisor.config.setting_kinds import PositiveDuration
from advisor.core.errors import InputError, StoreError
from advisor.core.units import DAY_S, format_duration_short
from advisor.formats.user_files import fault_in_words
from advisor.report.document import COUNT, Column, Document, PageLink, Row, Table, columns
from advisor.report.writers.text_formats import SCHEMA_VERSION
from advisor.service.listening import Listener
from advisor.service.prices.live import moment_ago, now
from advisor.store.database import existing_store

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.store.handle import Store


# Control characters name nothing, and PostgreSQL takes no NUL.
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Since = Annotated[
    PositiveDuration,
    Field(le=1200 * DAY_S),
    WithJsonSchema({"type": "string", "pattern": r"^[1-9]\d{0,2}d$"}),
]
_MONTH_S = 30 * DAY_S


class QueryError(InputError):
    """A parameter is unknown, or its value cannot be."""


class Query(BaseModel):
    """What may stand behind the question mark of an address; nothing else may."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class JobsQuery(Query):
    """Which jobs, the newest first."""

    project: Name | None = None
    most: int = Field(200, ge=1, le=1000)


class PeriodQuery(Query):
    """Of which time and whom; `since` is how far back, such as 30d."""

    since: Since = _MONTH_S
    project: Name | None = None


class ReportQuery(PeriodQuery):
    """Of which time and whom."""

    team: Name | None = None


class PricesQuery(Query):
    """Of which GPUs, and how far back."""

    gpu: Annotated[tuple[Name, ...], Field(max_length=8)] = ()
    since: Since = _MONTH_S


class QueueQuery(Query):
    """Of which cluster of the settings; the first with a job log if none is named."""

    cluster: Name | None = None


def read_query(kind: type[Query], given: Iterable[tuple[str, str]]) -> Query:
    """The query of an address. Raises QueryError: a name is unknown or given twice, or a value cannot be."""
    values: dict[str, Any] = {}
    for name, value in given:
        values.setdefault(name, []).append(value)
    for name, several in values.items():
        field = kind.model_fields.get(name)
        if field is None or field.default != ():
            if len(several) > 1:
                raise QueryError(f"{name[:40]!r} is given twice.")
            values[name] = several[0]
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        known = ", ".join(kind.model_fields) or "none"
        name = ".".join(map(str, first["loc"]))[:40]
        raise QueryError(f"{name!r}: {fault_in_words(first)} Parameters are: {known}.") from None


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes documents of the store and the settings; it writes nothing and asks no network."""

    config: Config
    """Offline, and without Cost Explorer."""

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The database, which was there when the service began.

        Raises StoreError: it is gone, or cannot be read.
        """
        with existing_store(self.config.settings.store.url) as store:
            if store is None:
                raise StoreError("the database is gone: restore it, or start the service anew.")
            yield store

    def jobs(self, query: JobsQuery) -> Document:
        """Recommendations, the newest first."""
        from advisor.report.runs import jobs_document
        from advisor.store.ledger import newest_recommendations

        with self.store() as store:
            entries = newest_recommendations(store, project=query.project, most=query.most)
        return _linked(jobs_document(entries), [f"/jobs/{quote(entry.id, safe='')}" for entry in entries])

    def job(self, _: Query, entry_id: str) -> Document:
        """One of them: its frontier, and the runs that followed."""
        from advisor.report.runs import job_document
        from advisor.store.ledger import find_recommendation, runs_of_recommendation

        with self.store() as store:
            entry = None if "\0" in entry_id else find_recommendation(store, entry_id)
            if entry is None:
                raise InputError("there is no job with this id.")
            return job_document(entry, runs_of_recommendation(store, entry.id))

    def runs(self, query: PeriodQuery) -> Document:
        """What ran, as ``advisor run list`` lists it."""
        from advisor.report.runs import runs_document
        from advisor.store.ledger import impossible_runs, runs

        since = moment_ago(query.since)
        with self.store() as store:
            found = runs(store, since=since, project=query.project)
            num_left_out = len(impossible_runs(store, since=since, project=query.project))
        return runs_document(found, num_left_out=num_left_out)

    def prices(self, query: PricesQuery) -> Document:
        """How prices changed, as ``advisor prices history`` shows it, and how old they are."""
        from advisor.report.prices import history_document
        from advisor.service.prices.offers import price_history
        from advisor.store.pulls import pulls

        series = price_history(query.gpu, query.since, self.config.pricing, Listener())
        with self.store() as store:
            pulled = pulls(store)
        at, rows = now(), []
        for p in pulled:
            age_s = None if p.succeeded_at is None else (at - p.succeeded_at).total_seconds()
            age = "never pulled" if age_s is None else format_duration_short(age_s)
            rows.append(Row((p.source, p.scope, p.num_offers, age, p.failure)))
        ages = (*columns("Source", "Scope"), Column("Offers", COUNT), *columns("Age", "Last failure"))
        table = Table(columns=ages, rows=tuple(rows), caption="Age of prices")
        document = history_document(series, at)
        made = document.page or (lambda: document.blocks)
        return replace(document, page=lambda: (*made(), *((table,) if rows else ())))

    def report(self, query: ReportQuery) -> Document:
        """Spending by team, user and tag, and predictions against runs, as ``advisor report`` shows it."""
        from advisor.report.review import first_document, review_document
        from advisor.service.reporting import ReportRequest, report_of

        request = ReportRequest(since=query.since, team=query.team, project=query.project)
        review = report_of(request, self.config, Listener())
        return first_document() if review is None else review_document(review)

    def queue(self, query: QueueQuery) -> Document:
        """How long jobs wait in a cluster's queue, as ``advisor queue show`` shows it."""
        from advisor.report.logs import queue_fit_document
        from advisor.service.queue_waits import fitted_waits

        logs = {one.name: one.wait_log for one in self.config.settings.clusters if one.wait_log is not None}
        name = query.cluster or next(iter(logs), "")
        if name not in logs:
            raise InputError("no cluster of the settings with this name has a wait_log (docs/settings.md).")
        return replace(queue_fit_document(fitted_waits(logs[name], Listener())), title=f"Waits of {name}")

    def schedules(self, _: Query) -> Document:
        """All schedules, as ``advisor schedule list`` lists them."""
        return self._scheduled(lambda _: True)

    def sweeps(self, _: Query) -> Document:
        """Scheduled sweeps; the last output of each says what moved."""
        return self._scheduled(lambda words: words[0] == "sweep")

    def _scheduled(self, is_wanted: Callable[[tuple[str, ...]], bool]) -> Document:
        from advisor.report.deliveries import schedules_document
        from advisor.service.schedule.managing import planned_schedules

        found = [p for p in planned_schedules(self.config.settings.store) if is_wanted(p.schedule.command)]
        hrefs = [f"/schedules/{quote(one.schedule.name, safe='')}" for one in found]
        return _linked(schedules_document(found), hrefs)

    def schedule(self, _: Query, name: str) -> Document:
        """One schedule with what it wrote last, as ``advisor schedule show`` shows it."""
        from advisor.report.deliveries import schedule_document
        from advisor.service.schedule.managing import planned_schedule

        return replace(schedule_document(planned_schedule(name, self.config.settings.store)), title=name)

    def metrics(self) -> Iterator[str]:
        """Gauges of the store as Prometheus reads them; an age is that of the last pull that succeeded."""
        from advisor.service.schedule.managing import planned_schedules
        from advisor.store.pulls import pulls

        with self.store() as store:
            pulled = [(one.source, one.scope, one.succeeded_at) for one in pulls(store)]
        yield "advisor_store_up 1"
        yield "# TYPE advisor_price_age_seconds gauge"
        for source, scope, at in pulled:
            if at is not None:
                labels = f"source={_label(source)},scope={_label(scope)}"
                yield f"advisor_price_age_seconds{{{labels}}} {(now() - at).total_seconds():.0f}"
        yield "# TYPE advisor_schedule_failed gauge"
        for one in planned_schedules(self.config.settings.store):
            failed = bool(one.past) and one.past[0].state == "failed"
            yield f"advisor_schedule_failed{{schedule={_label(one.schedule.name)}}} {failed:d}"


def _label(text: str) -> str:
    r"""A value of a label; only a backslash, a quote and a line break are written in another way."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def _linked(document: Document, hrefs: list[str]) -> Document:
    (block,) = document.blocks
    if not isinstance(block, Table):
        return document
    rows = zip(block.rows, hrefs, strict=True)
    linked = tuple(replace(row, cells=(PageLink(str(row.cells[0]), to), *row.cells[1:])) for row, to in rows)
    return replace(document, blocks=(replace(block, rows=linked, narrow=()),))


@dataclass(frozen=True, slots=True)
class View:
    """A page, and the same below ``/api``."""

    path: str
    """A name in braces is handed to `document`."""
    title: str
    """Of the link to it; "" for none."""
    query: type[Query]
    """What may stand behind the question mark."""
    document: Callable[..., Document]
    """Makes it."""
    answer: Mapping[str, object]
    """Fields of its JSON by name, each with its JSON Schema, besides those of all answers."""


_ROWS: Mapping[str, object] = {"type": "array", "items": {"type": "object"}}
_OBJECT: Mapping[str, object] = {"type": "object"}
_COUNT: Mapping[str, object] = {"type": "integer", "minimum": 0}


def views_of(reader: Reader) -> tuple[View, ...]:
    """All of them; those with a title are linked from each page."""

    def _list(of: Mapping[str, object]) -> Mapping[str, object]:
        return {"type": "array", "items": of}

    run, job, option = ({"$ref": f"{NAMED}{kind}"} for kind in KEPT)
    runs = {"runs": _list(run), "total_usd": {"type": "number"}}
    runs |= {"num_unknown_costs": _COUNT, "num_left_out": _COUNT}
    one_job = {"job": job, "options": _list(option), "runs": _list(run)}
    report: dict[str, object] = {name: {} for name in _OF_REPORTS.split()}
    waits: dict[str, object] = {name: {} for name in _OF_WAITS.split()}
    schedule = {"schedule": _OBJECT, "occurrences": _ROWS}
    return (
        View("/jobs", "Jobs", JobsQuery, reader.jobs, {"jobs": _list(job)}),
        View("/jobs/{name}", "", Query, reader.job, one_job),
        View("/runs", "Runs", PeriodQuery, reader.runs, runs),
        View("/report", "Spending and predictions", ReportQuery, reader.report, report),
        View("/prices", "Prices", PricesQuery, reader.prices, {"series": _ROWS}),
        View("/queue", "Queue", QueueQuery, reader.queue, waits),
        View("/sweeps", "Sweeps", Query, reader.sweeps, {"schedules": _ROWS}),
        View("/schedules", "Schedules", Query, reader.schedules, {"schedules": _ROWS}),
        View("/schedules/{name}", "", Query, reader.schedule, schedule),
    )


KEPT = ("Run", "LedgerEntry", "OfferedOption")
"""Values of the ledger that answers hold, by the names of their classes and of their schemas."""
NAMED = "#/components/schemas/"
# Their fields depend on what is known: docs/json.md.
_OF_REPORTS = (
    "is_first next_steps since until team projects num_recommendations recommended_usd spending billing"
    " accuracy budgets showback violations prices savings leaks leak_findings unknown warning_findings"
)
_OF_WAITS = (
    "size_unit num_jobs num_waiting left_out queues first_submit_s last_submit_s offset_p50 offset_p90 levels"
    " waiting end_s backlog_levels bins limits"
)


# The JSON API as an OpenAPI document, from the queries and answers of the views.


_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_WHY = {
    "400": "A parameter cannot be",
    "401": "Who asks is not known",
    "403": "A page of another site asks",
    "404": "There is nothing to show",
    "405": "Only GET and HEAD are answered",
    "414": "The address is too long",
    "421": "The service does not go by this name",
    "431": "The headers are too long",
    "500": "The service's own settings are wrong",
    "503": "The database cannot be read, or too many ask",
}


def api_document(views: Sequence[View]) -> Mapping[str, object]:
    """What may be asked below ``/api``, and what is answered."""
    from advisor.store import ledger

    kinds: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (kind, "serialization", TypeAdapter(getattr(ledger, kind))) for kind in KEPT
    ]
    _, made = TypeAdapter.json_schemas(kinds, ref_template=f"{NAMED}{{model}}")
    schemas: dict[str, Any] = made["$defs"]
    for kind in KEPT:
        schema = schemas[kind]
        for name in ("alternatives", "options"):
            schema["properties"].pop(name, None)
        schema |= {"required": sorted(schema["properties"]), "additionalProperties": False}
    return {
        "openapi": "3.1.0",
        "info": {"title": "advisor", "version": __version__, "description": "Read-only; see docs/json.md."},
        "paths": {f"/api{view.path}": {"get": _operation(view)} for view in views},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def answer_schema(view: View) -> dict[str, Any]:
    """JSON Schema of an answer: no field has another name."""
    common = {"schema_version": {"const": SCHEMA_VERSION}, "warnings": {"type": "array"}}
    return {"type": "object", "properties": {**common, **view.answer}, "additionalProperties": False}


def _operation(view: View) -> Mapping[str, object]:
    answers = [("200", "The answer", answer_schema(view)), *((*one, _ERROR) for one in _WHY.items())]
    of_path = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    of_query: dict[str, Any] = view.query.model_json_schema(mode="serialization")
    return {
        "summary": view.document.__doc__,
        "operationId": view.document.__name__,
        "parameters": [
            *([of_path] if "{name}" in view.path else []),
            *(
                {"name": name, "in": "query", "required": False, "schema": kind}
                for name, kind in of_query.get("properties", {}).items()
            ),
        ],
        "responses": {
            status: {"description": words, "content": {"application/json": {"schema": schema}}}
            for status, words, schema in answers
        },
    }
