"""A live Slurm in the place of a log: the jobs that sacct tells, or one clear line."""

import os
import re
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.service.listening import Listener
from advisor.service.queue_waits import check_waits, fit_waits, fitted_waits
from recommender.queue.fitted import fit
from tests.jobs import job_log, make_job, sacct_of
from tests.programs import write_program

SLURM = Path("slurm")
JOBS = [make_job(7 * i, wait_s=60.0 * (i % 50), size=1 + i % 4) for i in range(400)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """First on the path, and of a cluster in a zone of half hours; what is asked will stand in `asked`."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TZ", "America/St_Johns")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def says(folder: Path, text: str) -> None:
    write_program(folder / "sacct", f'echo "$@" $TZ $SLURM_TIME_FORMAT > asked\n{text}')


def test_jobs_of_all_users_are_asked_for_in_utc(folder):
    log = re.sub(r"\d{4}-\d\d-\d\dT[\d:]{8}", lambda time: f"{time[0]}+00:00", sacct_of(JOBS))
    (folder / "log").write_text(log)
    says(folder, "cat log")
    fitted = fit_waits(SLURM, None, Listener())
    assert (fitted.num_jobs, fitted.bins) == (400, fit(job_log(JOBS)).bins)
    assert fitted_waits(SLURM, Listener()) == fitted  # as `queue show` does
    # Not what the clock of Newfoundland says.
    assert fitted.first_submit_s == JOBS[0].submit_s
    asked = (folder / "asked").read_text()
    assert "--allusers --allocations --parsable2 --starttime=now-180days --format=JobID" in asked
    assert asked.endswith("UTC %Y-%m-%dT%H:%M:%S+00:00\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'accounting storage is disabled' >&2; exit 1", "refuses: accounting storage is disabled"),
        ("exit 3", "refuses: 3"),
        ("true", "what slurm tells is empty"),
        ("echo 'Submit|Start|ReqTRES|State'", "what slurm tells holds no job that started, of 0 in all."),
    ],
)
def test_a_slurm_that_tells_nothing_is_one_line(text, words, folder):
    says(folder, text)
    with pytest.raises(InputError, match=words):
        check_waits(SLURM, Listener())


def test_without_sacct_the_login_node_is_named(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(InputError, match="login node"):
        fit_waits(SLURM, None, Listener())


def test_a_file_of_that_name_is_a_log(folder):
    says(folder, "exit 3")
    (folder / "slurm").write_text(sacct_of(JOBS))
    assert fit_waits(SLURM, None, Listener()).num_jobs == 400
