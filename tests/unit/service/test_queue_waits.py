"""Waits of a log as a use case: what is read, written, noted and refused."""

from pathlib import Path
from typing import cast

import pytest

from advisor.core.errors import InputError
from advisor.service.listening import Listener
from advisor.service.queue_waits import WaitRequest, check_waits, expected_wait, fit_waits, fitted_waits
from tests.jobs import csv_of, make_job
from tests.listening import Heard

JOBS = [make_job(minute, wait_s=60 + minute % 7, size=1 + 3 * (minute % 2)) for minute in range(400)]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(csv_of(JOBS))
    return path


def test_a_fit_is_written_and_read_back(log, tmp_path):
    heard = Heard()
    fitted = fit_waits(log, tmp_path / "waits.json", heard)
    assert heard.steps == ["reading jobs.csv"]
    assert heard.notes == [f"wrote {str(tmp_path / 'waits.json')!r}"]
    assert fitted_waits(tmp_path / "waits.json", heard) == fitted == fitted_waits(log, heard)
    assert fitted.num_jobs == len(JOBS)


def test_nothing_is_written_unless_a_file_is_named(log, tmp_path):
    fit_waits(log, None, Listener())
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]


def test_jobs_that_are_left_out_are_noted(log):
    late = JOBS[0].submit_s - 60
    log.write_text(log.read_text() + f"{JOBS[0].submit_s},{late},1,3600,gpu\n")
    heard = Heard()
    check_waits(log, heard)
    assert [note.partition(":")[0] for note in heard.notes] == ["1 jobs left out"]


def test_the_wait_of_a_kind_of_job_is_that_of_its_bin(log):
    wait = expected_wait(WaitRequest(source=log, num_gpus=4, queue="gpu"), Listener())
    assert wait.alike == fitted_waits(log, Listener()).of(size=4, queue="gpu")
    assert wait.size_unit == "gpus"
    assert 55 <= wait.alike.p50_s <= wait.alike.p90_s <= 75


@pytest.mark.parametrize("count", [-1, 0, 1.5, float("nan"), float("inf"), 1e30])
def test_a_number_of_gpus_that_cannot_be_is_refused_before_anything_is_read(count):
    with pytest.raises(InputError, match="num_gpus must be a whole number of at least 1"):
        expected_wait(WaitRequest(source=Path("gone.csv"), num_gpus=cast("int", count)), Listener())
