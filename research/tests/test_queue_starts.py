"""What a plan of the queue says of a job, by hand."""

from dataclasses import replace

import pytest

from research.queue_starts import judged, planned_s
from research.queue_waits import with_table
from tests.jobs import BEGINNING_S, job_log, make_job


def running(minute: float, **more):
    return replace(make_job(minute, wait_s=0.0, **more), run_s=1e6)


@pytest.mark.parametrize(
    ("size", "walltime_s", "minutes"),
    [
        (1, 1800, 0),  # ends before the job that waits is due
        (1, 7200, 80),  # would delay it: follows it
        (4, 1800, 80),
    ],
)
def test_a_plan_knows_what_runs_and_waits_and_what_they_ask_for(size, walltime_s, minutes):
    """Three of four units are taken for 50 minutes more; then a job of four waits, which asks for 30."""
    present = [running(0, size=3, walltime_s=3600), make_job(5, wait_s=1e6, size=4, walltime_s=1800)]
    job = make_job(10, size=size, walltime_s=walltime_s)
    assert planned_s(job, present, 4) == 60 * minutes


def test_a_job_over_its_time_ends_at_once():
    assert planned_s(make_job(100, size=4), [running(0, size=4, walltime_s=600)], 4) == 1


def test_the_last_jobs_are_judged_by_what_was_known():
    jobs = [replace(make_job(10 * i, wait_s=60.0, user=f"u{i}"), run_s=60.0) for i in range(100)]
    found = list(judged(job_log(jobs), 4))
    assert len(found) == 30
    assert {(one.wait_s, one.planned_s) for one in found} == {(60.0, 0.0)}
    assert jobs[0].submit_s == BEGINNING_S


def test_a_table_is_replaced_and_the_rest_stays():
    page = "before\n<!-- written by x -->\n\nold\n\n<!-- end -->\nafter\n"
    assert with_table(page, "x", ["new"]) == page.replace("old", "new")
