"""The page of jobs: regret by records, the independent check of answers, and what speed measures."""

import copy
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Job, Market, Work
from advisor.pricing.expected_prices import PriceModel
from advisor.service.recommend.pipeline import recommendation_of
from benchmarks.job_checks import faults
from benchmarks.job_list import JOBS
from benchmarks.job_records import Records, at_later_prices, on_traces
from benchmarks.jobs import answer, choice_of, main, page, row_of
from benchmarks.timing import processor_s
from recommender.outcome.spot_history import Stretch
from research.chosen.panels import Panel
from research.spot_replay import ring_of
from tests.builders import make_plan, make_trace
from tests.recommending import places

A100 = resolve_gpu("A100-SXM-40GB")
THERE = places(
    [make_plan(A100.name, 4.0, id="lasting"), make_plan(A100.name, 1.0, id="spot", market=Market.SPOT)],
    {A100.name: A100},
    Job(iterations=10_000_000),
)


def ring(up_h: float, down_h: float) -> tuple[Stretch, ...]:
    stretches = [
        Stretch(start_h=0.0, hours=up_h, is_up=True),
        Stretch(start_h=up_h, hours=down_h, is_up=False),
    ]
    return tuple(ring_of(stretches))


@pytest.mark.parametrize(
    ("chosen", "up_h", "is_best"),
    [("spot", 10_000.0, True), ("lasting", 10_000.0, False), ("spot", 0.3, False), ("lasting", 0.3, True)],
)
def test_on_a_trace_the_pick_costs_what_the_machine_of_the_trace_lets_it(chosen, up_h, is_best):
    answer = recommendation_of(make_trace(), THERE)
    work = {option.plan.id: option.work for option in answer.options}
    assert work["spot"] in ((), (Work.CHECKPOINTS,))
    regret = on_traces(replace(answer, recommended=chosen), THERE, [ring(up_h, 100.0)])
    assert regret == 0 if is_best else regret > 0.1


def panel(*usd_per_h: tuple[float, float]) -> Panel:
    """One machine on spot in two regions, at two dates half a year apart."""
    regions = ("europe-west4", "us-central1")
    return Panel(
        provider="gcp",
        days=np.array([date(2025, 1, 1).toordinal(), date(2025, 7, 1).toordinal()]),
        machines=tuple(("a2-highgpu-1g", region) for region in regions),
        regions=regions,
        gpus=(A100.name, A100.name),
        spot=np.array(usd_per_h).T,
        on_demand=np.full((2, 2), 20.0),
    )


@pytest.mark.parametrize(
    ("later", "is_best"), [((4.0, 8.0), True), ((9.0, 16.0), True), ((16.0, 8.0), False)]
)
def test_at_later_prices_the_place_that_was_cheaper_is_paid(later, is_best):
    records = Records(panel=panel((4.0, 8.0), later), moments=((0, 1, PriceModel()),), rings={})
    (regret,) = at_later_prices(make_trace(), THERE, records)
    assert regret == pytest.approx(0) if is_best else regret > 0.1


Row = dict[str, Any]


def option(name: str, usd: float, hours: float, **changes: Any) -> Row:
    quantiles = {"p50": usd, "p90": usd}
    return {
        "id": name, "feasible": True, "folded_into": None, "iterations": 100,
        "cost_usd": quantiles, "time_s": {"p50": hours * 3600, "p90": hours * 3600},
        "iteration_s": {"p50": 0.5}, "p_within_budget": 0.95, "p_within_deadline": None,
        "expected": {"counted_usd": usd, "time_s": hours * 3600},
        "work": {"kinds": [], "usd": 0.0, "hours": 0.0},
    } | changes  # fmt: skip


DDP = {"kinds": ["ddp"], "usd": 25.0, "hours": 0.5}


def made_up_answer() -> Row:
    """A is recommended at 2 USD an hour: 10 + 20; B is 8 + 40, C 2 + 2 + 25 of work + half an hour."""
    options = [
        option("A", 10.0, 10.0),
        option("B", 8.0, 20.0),
        option("C", 4.0, 1.0, work=DDP),
        option("D", 10.5, 11.0, folded_into="A"),
    ]
    chosen = {
        "cost_p50_usd": 10.0, "cost_p90_usd": 10.0, "time_p50_s": 36000.0, "time_p90_s": 36000.0,
        "num_iterations": 100, "iteration_s": 0.5,
    }  # fmt: skip
    return {
        "recommended": "A",
        "job": {"value_of_time_usd_per_h": 2.0, "pick": None, "budget_usd": 20, "deadline_s": None,
                "confidence": 0.9},
        "options": options,
        "shortlist": [{"id": "A"}, {"id": "B"}, {"id": "C"}],
        "summary_findings": [
            {"code": "summary-choice", "facts": {"machine": {"facts": {"plan_id": "A"}}}},
            {"code": "summary-cost-and-time", "facts": chosen},
        ],
    }  # fmt: skip


def found(change: Callable[[Row], object], screen: str = "a\nb\n", warnings: str = "") -> list[str]:
    document = copy.deepcopy(made_up_answer())
    change(document)
    return faults(document, screen, warnings)


def test_an_answer_that_holds_has_no_fault():
    assert found(lambda _: None) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["options"][2]["work"].update(usd=10.0), "C has a smaller total"),
        (lambda d: d["options"][1]["expected"].update(time_s=3600.0), "B is cheaper, faster"),
        (lambda d: d["summary_findings"][1]["facts"].update(iteration_s=0.4), "summary's step is 0.4"),
        (lambda d: d["summary_findings"][0]["facts"]["machine"]["facts"].update(plan_id="B"), "machine is B"),
        (lambda d: d["options"][0].update(p_within_budget=0.5), "budget_usd holds in 50%"),
        (lambda d: d["options"][3].update(work=DDP), "D is folded into A"),
        (lambda d: d["options"][3].update(cost_usd={"p50": 13.0}), "D is folded into A"),
        (lambda d: d["options"][3].update(time_s={"p50": 50000.0}), "D is folded into A"),
    ],
)
def test_each_fault_is_named(change, words):
    assert any(words in fault for fault in found(change))


def test_in_a_job_of_minutes_a_dearer_row_that_gains_no_minute_is_like():
    def minutes(document: Row) -> None:
        document["options"][0]["time_s"] = {"p50": 600.0, "p90": 600.0}
        document["summary_findings"][1]["facts"].update(time_p50_s=600.0, time_p90_s=600.0)
        document["options"][3].update(cost_usd={"p50": 90.0}, time_s={"p50": 550.0})

    assert found(minutes) == []


@pytest.mark.parametrize(
    ("screen", "warnings", "words"),
    [
        ("line\n" * 25, "", ["25 lines"]),
        ("x" * 101, "", ["a line of 101 characters"]),
        ("line", "warning: a\n" * 4, ["4 warnings"]),
        ("line\n" * 24, "warning: a\nnote: b\n", []),
    ],
)
def test_a_screen_has_24_lines_and_three_warnings(screen, warnings, words):
    assert found(lambda _: None, screen, warnings) == words


def test_work_of_a_command_counts():
    works = processor_s([sys.executable, "-c", "sum(range(30_000_000))"], 1)
    starts = processor_s([sys.executable, "-c", "pass"], 1)
    assert works > starts > 0


def test_the_processor_of_a_command_that_fails_is_not_counted():
    with pytest.raises(subprocess.CalledProcessError, match="non-zero exit status 3"):
        processor_s([sys.executable, "-c", "raise SystemExit(3)"], 1)


ROOT = Path(__file__).resolve().parents[3]
ROWS = json.loads((ROOT / "docs" / "jobs.json").read_text())


def test_the_page_shows_the_recorded_rows():
    assert (ROOT / "docs" / "jobs.md").read_text() == page(ROWS, [])


def test_a_row_of_an_earlier_run_is_named():
    assert f"Not run anew when this page was written: {JOBS[-1].name}." in page(ROWS, [JOBS[-1].name])


@pytest.mark.parametrize(("row", "job"), list(zip(ROWS, JOBS, strict=True)), ids=[job.name for job in JOBS])
def test_each_sentence_speaks_of_what_is_recommended(row, job):
    assert row["name"] == job.name
    assert row["command"] == f"advisor recommend {job.arguments}"
    assert choice_of(row) == job.choice


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_nothing_recommended_is_beaten_or_derived(row):
    assert row["beaten_by"] == []
    assert row["price_kind"] != "derived"
    assert row["change"]
    assert row["faults"] == []
    assert row["earlier"] == []


def test_following_the_advice_costs_little_where_a_fact_was_wrong():
    regret = [share for row in ROWS for share in row["regret"].values() if share is not None]
    assert 0 <= statistics.fmean(regret) <= 0.05
    assert max(regret) <= 0.25


@pytest.mark.parametrize("name", ["later prices", "spot traces"])
def test_following_the_advice_costs_little_where_records_tell_what_came(name):
    by_job = {row["name"]: [one for one in row["recorded"][name] if one is not None] for row in ROWS}
    assert len(by_job) == len(JOBS)
    assert 0 <= statistics.fmean(one for regrets in by_job.values() for one in regrets) <= 0.05
    (line,) = (line for line in page(ROWS, []).splitlines() if line.startswith(f"- **{name.capitalize()}**"))
    for job, regrets in by_job.items():
        assert (f"{job} {max(regrets, default=0):.0%}" in line) == (max(regrets, default=0) > 0.25)


def test_the_stated_fact_flips_the_pick():
    wrong = [row["name"] for row in ROWS if row["flips"] is not None and not all(row["flips"].values())]
    assert wrong == []


@pytest.mark.torch
def test_a_quick_job_still_gets_the_recorded_answer():
    job = next(job for job in JOBS if job.name == "MNIST")
    row = answer(job)
    assert row is not None
    assert choice_of(row_of(job, row)) == job.choice


def test_a_job_whose_file_is_missing_is_not_run(tmp_path):
    (recorded,) = (job for job in JOBS if ".json.gz" in job.arguments)
    assert answer(recorded, tmp_path) is None


def test_a_stale_sentence_stops_the_page(tmp_path, monkeypatch):
    other = {**ROWS[0], "gpu": "T4"}
    monkeypatch.setattr("benchmarks.jobs.JOBS", JOBS[:1])
    monkeypatch.setattr("benchmarks.jobs.answer", lambda *_: {})
    monkeypatch.setattr("benchmarks.jobs.row_of", lambda *_: other)
    monkeypatch.setattr("sys.argv", ["jobs", "--out", str(tmp_path / "jobs.md")])
    with pytest.raises(SystemExit, match="read the sentences"):
        main()
    assert not list(tmp_path.iterdir())
