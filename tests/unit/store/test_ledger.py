"""Recommendations and runs come back as they were; what was spent is their sum."""

import dataclasses
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, column, table, text, update

from advisor.core.errors import StoreError
from advisor.core.values import CostKind, Interval, Market, Quantiles, RunStatus
from advisor.store.ledger import (
    Alternative,
    LedgerEntry,
    Run,
    find_recommendation,
    find_run,
    impossible_recommendations,
    impossible_runs,
    newest_recommendations,
    recommendation_ids,
    recommendations,
    record_recommendation,
    record_run,
    runs,
    runs_of_recommendation,
)
from advisor.store.transactions import writing
from tests.team import make_offered

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def make_entry(hours: float = 0, **changes: Any) -> LedgerEntry:
    facts: dict[str, Any] = {
        "at": NOON + timedelta(hours=hours),
        "project": "vision",
        "script": "train.py",
        "plan_id": "aws-p4d",
        "provider": "aws",
        "gpu": "A100-SXM-40GB",
        "num_gpus": 8,
        "market": Market.SPOT,
        "time_s": Quantiles(p50=0.1 + 0.2, p90=7200.0),
        "cost_usd": Quantiles(p50=1 / 3, p90=44.0),
    }
    return LedgerEntry(**(facts | changes))


def make_run(hours: float = 0, **changes: Any) -> Run:
    facts: dict[str, Any] = {
        "project": "vision",
        "script": "train.py",
        "provider": "aws",
        "gpu": "A100-SXM-40GB",
        "num_gpus": 8,
        "market": Market.ON_DEMAND,
        "started_at": NOON + timedelta(hours=hours),
        "duration_s": 3600.5,
        "cost_usd": 21.957642,
        "cost_kind": CostKind.STATED,
    }
    return Run(**(facts | changes))


def test_recommendations_come_back_in_order_of_time(store):
    entries = [make_entry(hours) for hours in (2, 0, 1)]
    entries.append(make_entry(3, market=None, provider="lab", note="no rent", project=""))
    assert [record_recommendation(store, entry) for entry in entries] == [entry.id for entry in entries]
    kept = recommendations(store, since=NOON)
    assert kept == tuple(sorted(entries, key=lambda entry: entry.at))
    assert kept[0].at.isoformat() == NOON.isoformat()


def test_runs_come_back_in_order_of_time(store):
    entry = make_entry()
    made = [make_run(2), make_run(0, recommendation_id=entry.id), make_run(1, market=None, note="ours")]
    made.append(make_run(3, cost_usd=None, cost_kind=None, duration_s=None, status=RunStatus.LOST))
    assert [record_run(store, run) for run in made] == [run.id for run in made]
    assert runs(store, since=NOON) == (made[1], made[2], made[0], made[3])


def test_one_is_found_by_its_id(store):
    old, new, run = make_entry(0), make_entry(1), make_run(market=None)
    record_recommendation(store, old)
    record_recommendation(store, new)
    record_run(store, run)
    assert find_recommendation(store, old.id) == old
    assert find_run(store, run.id) == run
    assert recommendation_ids(store) == (new.id, old.id)
    assert find_recommendation(store, run.id) is None
    assert find_run(store, old.id) is None


def test_ids_are_all_different():
    assert len({make_run().id for _ in range(100)} | {make_entry().id for _ in range(100)}) == 200


def test_recording_again_changes_nothing(store):
    run, entry = make_run(), make_entry()
    for _ in range(2):
        record_run(store, run)
        record_recommendation(store, entry)
    record_run(store, dataclasses.replace(run, cost_usd=1e6))
    assert runs(store, since=NOON) == (run,)
    assert recommendations(store, since=NOON) == (entry,)


def test_questions_by_time_and_project(store):
    for hours, project in ((0, "vision"), (1, "speech"), (2, "vision"), (3, "")):
        record_run(store, make_run(hours, project=project, cost_usd=10.0**hours))
        record_recommendation(store, make_entry(hours, project=project))
    later = NOON + timedelta(hours=1)
    assert [run.project for run in runs(store, since=later)] == ["speech", "vision", ""]
    assert [run.cost_usd for run in runs(store, since=NOON, project="vision")] == [1.0, 100.0]
    assert [entry.at for entry in recommendations(store, since=later, project="speech")] == [later]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        *(
            ({name: number}, f"cannot be recorded: {name} is .*: it must be between 0 and")
            for name in ("duration_s", "cost_usd")
            for number in (-1.0, math.nan, math.inf)
        ),
        ({"started_at": NOON.replace(tzinfo=None)}, "has no time zone"),
        *(
            ({name: None}, "cost_usd is given without cost_kind, or the reverse")
            for name in ("cost_usd", "cost_kind")
        ),
    ],
)
def test_a_run_that_cannot_be_is_refused(store, changes, fault):
    with pytest.raises(StoreError, match=fault):
        record_run(store, make_run(**changes))
    assert runs(store, since=NOON) == ()


@pytest.mark.parametrize("name", ["time_s", "cost_usd"])
def test_a_recommendation_of_impossible_numbers_is_refused(store, name):
    with pytest.raises(StoreError, match="it must be between 0 and"):
        record_recommendation(store, make_entry(**{name: Quantiles(p50=1.0, p90=math.nan)}))
    assert recommendations(store, since=NOON) == ()


# Every field has a value of its own, none of them a default.
WHOLE_ENTRY = {
    "instance_type": "p4d.24xlarge",
    "region": "us-east-1",
    "command": "advisor recommend train.py --epochs 90",
    "budget_usd": 200.0,
    "deadline_s": 86_400.0,
    "usd_per_h": 21.957642,
    "num_iterations": 450_000,
    "iteration_s": Interval(p10=0.1, p50=0.2, p90=0.4),
    "uncorrected_p50_s": 0.18,
    "note": "a note",
    "alternatives": (
        Alternative(gpu="L4", num_gpus=8, iteration_p50_s=0.5, train_p50_s=9e4, train_p90_s=1e5),
        Alternative(gpu="T4", num_gpus=1, iteration_p50_s=1 / 3, train_p50_s=9e5, train_p90_s=1e6),
    ),
    "num_nodes": 2,
    "options": (make_offered("aws-p4d", 2.0, 1 / 3), make_offered("lab", 9e4, 0.0, market=None)),
}
WHOLE_RUN = {
    "num_nodes": 2,
    "gpu_busy_share": 0.57,
    "gpu_mean_w": 61.5,
    "gpu_mean_clock_hz": 1.41e9,
    "gpu_peak_bytes": 2**33,
    "recommendation_id": "r1",
    "note": "a note",
    "instance_type": "p4d.24xlarge",
    "region": "us-east-1",
    "zone": "use1-az4",
    "user": "mona",
    "status": RunStatus.INTERRUPTED,
    "exit_code": -15,
    "num_steps": 3_000_000_000,
    "step_s": Interval(p10=0.1, p50=0.2, p90=1 / 3),
    "cost_kind": CostKind.ESTIMATED,
    "usd_per_h": 21.957642,
    "price_retrieved_at": NOON,
}


def test_every_field_comes_back(store):
    entry, run = make_entry(**WHOLE_ENTRY), make_run(**WHOLE_RUN)
    for value in (entry, run):
        defaults = {item.name: item.default for item in dataclasses.fields(value)}
        assert [name for name, default in defaults.items() if getattr(value, name) == default] == []
    record_recommendation(store, entry)
    record_run(store, run)
    assert find_recommendation(store, entry.id) == entry
    assert find_run(store, run.id) == run


def test_the_newest_come_first_without_what_else_was_offered(store):
    entries = [
        make_entry(hours, **WHOLE_ENTRY, project=name) for hours, name in ((0, "a"), (2, "b"), (1, "b"))
    ]
    runs_of = [make_run(hours, recommendation_id=entries[1].id) for hours in (2, 1)]
    for entry in entries:
        record_recommendation(store, entry)
    for run in (*runs_of, make_run()):
        record_run(store, run)
    bare = [dataclasses.replace(entry, options=(), alternatives=()) for entry in entries]
    assert newest_recommendations(store, most=2) == (bare[1], bare[2])
    assert newest_recommendations(store, project="a", most=2) == (bare[0],)
    assert runs_of_recommendation(store, entries[1].id) == (runs_of[1], runs_of[0])


def test_the_end_of_a_run_takes_the_place_of_a_lost_one_and_nothing_else_does(store):
    unknown = {"cost_usd": None, "cost_kind": None, "duration_s": None, "status": RunStatus.LOST}
    lost = make_run(id="one", num_steps=3, step_s=Interval(p10=1.0, p50=2.0, p90=3.0), **unknown)
    ended = make_run(id="one", exit_code=0)
    for run in (lost, lost, ended, lost, make_run(id="one", exit_code=7)):
        record_run(store, run)
    assert runs(store, since=NOON) == (ended,)


def test_a_run_that_somebody_else_wrote_and_cannot_be_true_is_in_no_total(store):
    """Such as of an older version: one absurd cost would spoil every sum."""
    for number in range(4):
        record_run(store, make_run(id=f"run-{number}", cost_usd=2.0))
    with writing(store) as connection:
        connection.execute(text("UPDATE runs SET cost_usd = 1e308 WHERE id = 'run-1'"))
        connection.execute(text("UPDATE runs SET num_gpus = -5 WHERE id = 'run-2'"))
    assert [run.id for run in runs(store, since=NOON)] == ["run-0", "run-3"]
    first, second = impossible_runs(store, since=NOON)
    assert first == "the run run-1: cost_usd is 1e+308: it must be between 0 and 1000000000000"
    assert second.startswith("the run run-2: num_gpus is -5")


def _damage(connection: Connection, name: str, changed: str, value: object, row_id: str) -> None:
    """Write what the column's own type would refuse."""
    rows = table(name, column("id"), column(changed))
    connection.execute(update(rows).where(rows.c.id == row_id).values({changed: value}))


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("status", "exploded"),
        ("status", b"finished"),
        ("cost_kind", "guess"),
        ("market", "black"),
        ("started_at", "2026-13-45 99:00:00.000000"),
        ("started_at", "2026-02-30 10:00:00.000000"),
        ("started_at", "2026-11-02 24:00:00.000000"),
        ("started_at", "0000-11-02 10:00:00.000000"),
        ("started_at", "now"),
        ("started_at", 2461006.5),
        ("price_retrieved_at", "2026-11-02 10:00:00.12x"),
        ("duration_s", "long"),
        ("num_gpus", "eight"),
        ("cost_usd", float("inf")),
    ],
)
def test_a_value_that_no_column_has_costs_its_own_row_alone(sqlite_store, changed, value):
    for number in range(2):
        record_run(sqlite_store, make_run(id=f"run-{number}", cost_usd=2.0))
    with writing(sqlite_store) as connection:
        _damage(connection, "runs", changed, value, "run-1")
    assert [run.id for run in runs(sqlite_store, since=NOON)] == ["run-0"]
    (line,) = impossible_runs(sqlite_store, since=NOON)
    assert line.startswith("the run run-1: ")
    assert changed in line


def test_times_that_can_be_read_are_times(sqlite_store):
    moments = ("23:59:59.999999", "00:00:00.000001", "12:00:00", "12:00:00.5")
    for number, moment in enumerate(moments):
        record_run(sqlite_store, make_run(id=f"run-{number}"))
        with writing(sqlite_store) as connection:
            at = {"at": f"2026-12-31 {moment}", "id": f"run-{number}"}
            connection.execute(text("UPDATE runs SET started_at = :at WHERE id = :id"), at)
    assert len(runs(sqlite_store, since=NOON)) == len(moments)
    assert impossible_runs(sqlite_store, since=NOON) == ()


@pytest.mark.parametrize(
    ("changed", "value", "is_left_out"),
    [
        ("market", "black", True),
        ("at", "yesterday", True),
        ("time_p50_s", "long", True),
        ("cost_p90_usd", -1.0, True),
        ("alternatives", "[{]", False),
        ("alternatives", '[{"gpu": "L4", "colour": 1}]', False),
        ("alternatives", "7", False),
    ],
)
def test_a_recommendation_that_is_damaged_costs_itself_alone(sqlite_store, changed, value, *, is_left_out):
    damaged, whole = make_entry(0), make_entry(1)
    for entry in (damaged, whole):
        record_recommendation(sqlite_store, entry)
    with writing(sqlite_store) as connection:
        _damage(connection, "recommendations", changed, value, damaged.id)
    expected = [whole.id] if is_left_out else [damaged.id, whole.id]
    assert [entry.id for entry in recommendations(sqlite_store, since=NOON)] == expected
    assert (find_recommendation(sqlite_store, damaged.id) is None) is is_left_out
    lines = impossible_recommendations(sqlite_store)
    assert [damaged.id in line for line in lines] == [True] * is_left_out
