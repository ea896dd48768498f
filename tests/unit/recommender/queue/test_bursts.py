"""Which jobs are one piece of evidence."""

import math

import pytest

from recommender.queue.waits import Bursts, QueuedJob, that_count
from tests.jobs import make_job

FIRST = make_job(0, wait_s=3600, user="ada")


def counted(*jobs: QueuedJob) -> list[bool]:
    bursts = Bursts()
    return [bursts.is_new(job) for job in sorted(jobs, key=lambda job: job.start_s)]


def test_a_burst_that_starts_together_counts_once():
    assert counted(*[make_job(i / 60, wait_s=3600, user="ada") for i in range(200)]) == [True] + 199 * [False]


@pytest.mark.parametrize(
    "other",
    [
        make_job(0, wait_s=3600, user="eve"),
        make_job(0, wait_s=3600, user="ada", size=2),
        make_job(0, wait_s=3600, user="ada", queue="long"),
        make_job(0, wait_s=3600, user="ada", walltime_s=60),
        make_job(0, wait_s=3600 + 301, user="ada"),
        make_job(-6, wait_s=3600 + 360, user="ada"),
    ],
    ids=["user", "size", "queue", "walltime", "started-later", "submitted-earlier"],
)
def test_what_differs_counts(other):
    assert counted(FIRST, other) == [True, True]


def test_a_job_that_started_long_before_does_not_hide_its_like():
    assert counted(*[make_job(0, wait_s=wait_s) for wait_s in (60, 300, 500, 700)]) == [
        True, False, True, False,
    ]  # fmt: skip


def test_of_those_that_wait_the_eldest_of_a_burst_counts():
    burst = [make_job(i, wait_s=math.inf) for i in range(8)]
    other = make_job(3, wait_s=math.inf, user="eve")
    assert that_count([*burst[::-1], other]) == [burst[0], other, burst[6]]
