"""The page of jobs shows what was recorded, and its sentences speak of what is recommended."""

import json
import statistics
from pathlib import Path

import pytest

from benchmarks.job_list import JOBS
from benchmarks.jobs import answer, choice_of, main, page, row_of

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
