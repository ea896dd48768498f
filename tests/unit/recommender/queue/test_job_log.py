"""Job logs in three forms: read alike, faults told by line, what cannot have happened counted."""

import gzip
import math
import os
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from advisor.core.errors import InputError
from advisor.site_files import job_logs, log_rows
from advisor.site_files.fitted_files import load_fit
from advisor.site_files.job_logs import parse_walltime_s, read_job_log
from recommender.queue.waits import QueuedJob
from tests.jobs import SACCT_COLUMNS, csv_of, make_job, sacct_of, swf_of
from tests.shared import SHARED, needs_shared

JOBS = tuple(
    sorted(
        make_job(i, size=size, wait_s=30.0 * i, walltime_s=walltime_s, queue=queue)
        for i, (size, walltime_s, queue) in enumerate(
            [(1, 3600, "1"), (8, 90000, "2"), (4, -1, "1"), (1, 129600, "1"), (2, 1800, "2")]
        )
    )
)


def write(tmp_path: Path, text: str, name: str = "log") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("form", "unit"), [(csv_of, "gpus"), (sacct_of, "gpus"), (swf_of, "cores")], ids=["csv", "sacct", "swf"]
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_the_forms_tell_the_same(tmp_path, form, unit, is_packed):
    payload = form(JOBS).encode()
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(payload) if is_packed else payload)
    log = read_job_log(path)
    jobs = JOBS if form is csv_of else tuple(replace(job, run_s=600.0) for job in JOBS)
    assert (log.jobs, log.size_unit, log.left_out) == (jobs, unit, {})


@pytest.mark.parametrize("form", [csv_of, sacct_of, swf_of])
@pytest.mark.parametrize("order", [1, -1])
def test_of_a_long_log_the_newest_jobs_are_kept(tmp_path, monkeypatch, form, order):
    path = write(tmp_path, form(JOBS[::order]))
    whole = read_job_log(path)
    monkeypatch.setattr(job_logs, "MOST_JOBS", 3)
    log = read_job_log(path)
    assert (log.jobs, log.left_out) == (whole.jobs[-3:], {"older than the newest 3": len(JOBS) - 3})
    monkeypatch.setattr(job_logs, "MOST_JOBS", len(JOBS))
    assert read_job_log(path) == whole


def test_of_a_long_log_jobs_with_gpus_are_kept_before_newer_ones_without(tmp_path, monkeypatch):
    without = [replace(make_job(600.0 + minute), size=0.0) for minute in range(9)]
    monkeypatch.setattr(job_logs, "MOST_JOBS", 3)
    log = read_job_log(write(tmp_path, sacct_of([*JOBS, *without])))
    assert [job.size for job in log.jobs] == [job.size for job in JOBS[-3:]]
    assert log.left_out == {"asked for no GPU": 9, "older than the newest 3": len(JOBS) - 3}


def test_of_a_long_log_no_line_with_a_fault_is_passed_over(tmp_path, monkeypatch):
    text = sacct_of(JOBS)
    monkeypatch.setattr(job_logs, "MOST_JOBS", 2)
    with pytest.raises(InputError, match=f"line {len(text.splitlines()) + 1}: 2 fields under"):
        read_job_log(write(tmp_path, text + "too|short"))


def test_a_file_without_end_is_refused_before_anything_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(log_rows, "MOST_LINES", len(JOBS))
    with pytest.raises(InputError, match=f"more than {len(JOBS)} lines: keep the newest"):
        read_job_log(write(tmp_path, csv_of(JOBS) + "\n"))


def test_rows_of_nothing_are_left_behind_by_spreadsheets(tmp_path):
    assert read_job_log(write(tmp_path, csv_of(JOBS) + ",,,,\n\n")).jobs == JOBS


def test_order_in_the_file_does_not_matter(tmp_path):
    assert read_job_log(write(tmp_path, csv_of(JOBS[::-1]))).jobs == JOBS


@pytest.mark.parametrize("mark", ["\ufeff", "\n", " \n\n"])
def test_what_spreadsheets_put_before_the_header(tmp_path, mark):
    assert read_job_log(write(tmp_path, mark + csv_of(JOBS))).jobs == JOBS


def sacct(tmp_path: Path, *rows: str) -> Path:
    return write(tmp_path, "\n".join([SACCT_COLUMNS, *rows, ""]))


GOOD = (
    "1|2026-03-01T00:00:00|2026-03-01T01:00:00|2026-03-01T02:00:00|01:00:00|1-00:00:00"
    "|gres/gpu=2|8|1|a|COMPLETED"
)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2|2026-03-01T00:00:00|Unknown|Unknown|0|1:00:00|gres/gpu=2|8|1|a|NODE_FAIL", "never started"),
        ("2|2024-03-01T00:00:00|Unknown|Unknown|0|1:00:00|gres/gpu=2|8|1|a|PENDING", "never started"),
        (
            "2|2026-03-01T00:00:00|None|2026-03-01T00:09:00|0|1:00|gres/gpu=1||1|a|CANCELLED by 7",
            "never started",
        ),
        (
            "2|2026-03-01T00:00:00|2026-03-01T03:00:00|2026-03-01T03:00:00|0|1:00|gres/gpu=1||1|a|CANCELLED",
            "cancelled before the start",
        ),
        (
            "2|2026-03-01T02:30:00|2026-03-01T01:31:00|2026-03-01T03:00:00|0|1:00|gres/gpu=1||1|a|COMPLETED",
            "started before the submission",
        ),
        ("2|1970-01-01T00:00:00|2026-03-01T01:31:00|Unknown|0|1:00|gres/gpu=1||1|a|RUNNING", "clock jumped"),
        (
            "2|2026-03-01T00:00:00|2026-03-01T01:31:00|2026-03-01T01:00:00|0|1:00|gres/gpu=1||1|a|COMPLETED",
            "clock jumped",
        ),
        (
            "2|4026-03-01T00:00:00|4026-03-01T01:31:00|4026-03-01T02:00:00|0|1:00|gres/gpu=1||1|a|COMPLETED",
            "clock jumped",
        ),
    ],
)
def test_what_tells_no_wait_is_counted(tmp_path, row, reason):
    log = read_job_log(sacct(tmp_path, GOOD, row))
    assert len(log.jobs) == 1
    assert log.left_out == {reason: 1}


def test_a_log_of_which_nothing_counts_says_why(tmp_path):
    early = GOOD.replace("2026-03-01T01:00:00|2026", "2026-02-01T01:00:00|2026")
    with pytest.raises(InputError, match=r"of 2 in all \(2 started before the submission\)"):
        read_job_log(sacct(tmp_path, early, early))


def test_a_run_time_tells_the_end_too(tmp_path):
    header = "JobID|Submit|Start|Elapsed|NNodes|State"
    rows = ("1|0|60|00:00:00|1|CANCELLED", "2|0|60|00:10:00|1|CANCELLED", "3|0|60||1|RUNNING")
    log = read_job_log(write(tmp_path, "\n".join([header, *rows, ""])))
    assert (len(log.jobs), log.left_out) == (2, {"cancelled before the start": 1})


@pytest.mark.parametrize("tres", ["cpu=8,mem=1G", ""])
def test_jobs_without_a_gpu_wait_for_something_else(tmp_path, tres):
    log = read_job_log(sacct(tmp_path, GOOD, GOOD.replace("gres/gpu=2", tres)))
    assert (len(log.jobs), log.left_out) == (1, {"asked for no GPU": 1})


@pytest.mark.parametrize("end", ["2026-03-01T02:00:00", "Unknown"])
def test_cancelled_while_it_ran_or_still_running_did_wait(tmp_path, end):
    row = f"2|2026-03-01T00:00:00|2026-03-01T01:00:00|{end}|1:00|1:00|gres/gpu=1|8|1|a|CANCELLED by 7"
    (job,) = read_job_log(sacct(tmp_path, row)).jobs
    assert job.wait_s == 3600


def test_a_held_job_waits_from_when_it_may_run(tmp_path):
    text = "submit,eligible,start,gpus\n0,500,800,1\n0,,800,1\n"
    waits = {job.wait_s for job in read_job_log(write(tmp_path, text)).jobs}
    assert waits == {300, 800}


def test_a_job_that_may_start_in_the_future_does_not_wait_yet(tmp_path):
    """Otherwise all other jobs would have waited until then."""
    later = "2|4026-03-01T00:30:00|Unknown|Unknown|0|1:00:00|gres/gpu=2|8|1|a|PENDING"
    log = read_job_log(sacct(tmp_path, GOOD, later))
    assert (log.waiting, log.end_s) == ((), log.jobs[0].start_s)
    assert log.left_out == {"never started": 1}


ELIGIBLE = "JobID|User|Submit|Eligible|Start|End|Elapsed|Timelimit|ReqTRES|Partition|State"


def test_a_job_that_waits_still_is_kept_apart(tmp_path):
    pending = "2|2026-03-01T00:30:00|Unknown|Unknown|0|1:00:00|gres/gpu=2|8|1|a|PENDING"
    log = read_job_log(sacct(tmp_path, GOOD, pending))
    (waiting,) = log.waiting
    assert waiting.start_s == math.inf
    assert (log.jobs[0].start_s - waiting.submit_s, log.end_s) == (1800, log.jobs[0].start_s)
    assert log.left_out == {}


@pytest.mark.parametrize(
    ("eligible", "num_waiting", "age_s"), [("2026-03-01T00:20:00", 1, 2400), ("Unknown", 0, None)]
)
def test_a_job_waits_from_when_nothing_holds_it_back(tmp_path, eligible, num_waiting, age_s):
    """Slurm knows no time of eligibility of a job that is held or waits for another one."""
    times = "2026-03-01T00:00:00|2026-03-01T00:30:00|2026-03-01T01:00:00|2026-03-01T02:00:00"
    rows = (
        f"1|ada|{times}|01:00:00|1-00:00:00|gres/gpu=1|a|COMPLETED",
        f"2|eve|2026-03-01T00:00:00|{eligible}|Unknown|Unknown|00:00:00|1-00:00:00|gres/gpu=1|a|PENDING",
    )
    log = read_job_log(write(tmp_path, "\n".join([ELIGIBLE, *rows, ""])))
    assert (log.jobs[0].wait_s, log.jobs[0].user) == (1800, "ada")
    assert len(log.waiting) == num_waiting
    assert [log.end_s - job.submit_s for job in log.waiting] == ([] if age_s is None else [age_s])
    assert log.left_out == ({} if num_waiting else {"never started": 1})


@pytest.mark.parametrize("user", ["", "-1", "Unknown"])
def test_a_user_may_be_unknown(tmp_path, user):
    text = f"submit,start,gpus,user\n0,60,1,{user}\n"
    assert read_job_log(write(tmp_path, text)).jobs[0].user == ""


# Berlin's clock repeats the hour from 02:00 on 2026-10-25, and skips it on 2026-03-29.
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("submit", "start", "end", "run", "wait_min"),
    [
        ("2026-03-29T01:30:00", "2026-03-29T03:30:00", "", "", 60),
        ("2026-10-25T00:30:00", "2026-10-25T05:30:00", "", "", 360),
        ("2026-10-25T02:50:00", "2026-10-25T02:10:00", "", "", 20),
        ("2026-10-25T01:50:00", "2026-10-25T02:10:00", "2026-10-25T03:10:00", "02:00:00", 20),
        ("2026-10-25T01:50:00", "2026-10-25T02:10:00", "2026-10-25T03:10:00", "01:00:00", 80),
        ("2026-10-25T01:50:00+02:00", "2026-10-25T02:10:00+01:00", "", "", 80),
        ("2026-10-25T01:50:00", "2026-10-25T02:10:00", "", "", None),
        ("2026-10-25T02:10:00", "2026-10-25T03:10:00", "", "", None),
    ],
)
def test_a_change_of_clocks_makes_no_wait_an_hour_wrong(tmp_path, submit, start, end, run, wait_min):
    text = f"submit,start,end,elapsed,gpus\n{submit},{start},{end},{run},1\n0,60,120,60,1\n"
    log = read_job_log(write(tmp_path, text), BERLIN)
    waits_min = [job.wait_s / 60 for job in log.jobs[1:]]
    assert waits_min == ([] if wait_min is None else [wait_min])
    assert log.left_out == ({"waited in the hour that a clock repeats": 1} if wait_min is None else {})


@pytest.mark.parametrize(
    ("tres", "size"),
    [
        ("billing=8,cpu=8,gres/gpu=4,mem=64G,node=1", 4),
        ("cpu=8,gres/gpu:a100=3,gres/gpu=3", 3),
        ("gres/gpu:a100=3,gres/gpu:t4=1", 4),
    ],
)
def test_gpus_of_slurm(tmp_path, tres, size):
    first = GOOD.replace("gres/gpu=2", "gres/gpu=16")
    log = read_job_log(sacct(tmp_path, first, GOOD.replace("gres/gpu=2", tres)))
    assert log.size_unit == "gpus"
    assert [job.size for job in log.jobs] == [size, 16]


@pytest.mark.parametrize(
    ("columns", "values", "unit", "size"),
    [
        ("gpus,slots", "0,56", "cores", 56),
        ("gpus,slots", "2,56", "gpus", 2),
        ("nodes,cores", "3,96", "nodes", 3),
        ("size", "5", "gpus", 5),
        ("gpus", "0.5", "gpus", 0.5),
    ],
)
def test_the_most_telling_size_counts(tmp_path, columns, values, unit, size):
    log = read_job_log(write(tmp_path, f"submit,start,{columns}\n0,60,{values}\n"))
    assert (log.size_unit, log.jobs[0].size) == (unit, size)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0,soon,1,60,a", "line 3: start 'soon' is no time"),
        ("?,60,1,60,a", "line 3: submit '?' is no time"),
        (",60,1,60,a", "line 3: the submission time is missing"),
        ("0,60,many,60,a", "line 3: gpus 'many' is no count"),
        ("0,60,-3,60,a", "line 3: gpus '-3' is no count"),
        ("0,60,1,long,a", "line 3: 'long' is not a duration"),
        ("0,60,1", "line 3: 3 fields under 5 columns"),
        ("0,nan,1,60,a", "line 3: start 'nan' is no time"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(tmp_path, row, words):
    text = f"submit,start,gpus,walltime,queue\n0,60,1,3600,a\n{row}\n"
    with pytest.raises(InputError) as raised:
        read_job_log(write(tmp_path, text))
    assert words in str(raised.value)


def test_many_faults_are_told_at_once_but_not_all(tmp_path):
    text = "submit,start,gpus\n" + "0,x,1\n" * 9
    with pytest.raises(InputError) as raised:
        read_job_log(write(tmp_path, text))
    lines = str(raised.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:6]] == [f"line {n}" for n in range(2, 7)]
    assert lines[6].strip() == "and 4 more lines"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("hello world\n", "no column of the submission time"),
        ("submit,gpus\n0,1\n", "no column of the start time"),
        ("submit,start\n0,60\n", "how large its jobs are: it needs a column gpus, nodes or cores"),
        ("submit,start,gpus\n0,60,0\n0,60,\n", r"how large its jobs are: none asks for any gpus\. Export"),
        ("submit,start,nodes,cores\n0,60,0,0\n", "none asks for any cores or nodes"),
        ("submit|start|ReqTRES\n0|60|cpu=8\n", "none asks for any gpus.* AccountingStorageTRES=gres/gpu"),
        ("submit,start,gpus\n", "no job that started, of 0"),
        ("submit,start,gpus\n0,,1\n", "no job that started, of 1"),
        ("; a comment\n1 0 5\n", "line 2: 3 fields, where SWF has 18"),
        ('submit,start,gpus\n0,60,"1\n', "line 2: no valid CSV"),
    ],
)
def test_what_is_no_job_log_is_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_job_log(write(tmp_path, text))


@pytest.mark.parametrize(
    "payload", [b"\x1f\x8bnot gzip", gzip.compress(b"submit,start\n" * 99, mtime=0)[:30], b"\xff\xfe\0"]
)
def test_damaged_files_are_refused(tmp_path, payload):
    path = tmp_path / "log"
    path.write_bytes(payload)
    with pytest.raises(InputError, match="cannot read"):
        read_job_log(path)


@pytest.mark.parametrize("read", [read_job_log, load_fit])
def test_a_pipe_is_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is no file"):
        read(tmp_path / "pipe")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read '.*none': no such file or directory\.$"):
        read_job_log(tmp_path / "none")
    with pytest.raises(InputError, match="cannot read"):
        read_job_log(tmp_path)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-12:30:00", 131400), ("12:00:00", 43200), ("30:00", 1800), ("43200", 43200), ("12h", 43200),
        ("UNLIMITED", None), ("Partition_Limit", None), ("", None), ("-1", None),
    ],
)  # fmt: skip
def test_requested_run_times(text, seconds):
    assert parse_walltime_s(text) == seconds


@needs_shared
@pytest.mark.parametrize(
    ("name", "num_jobs", "unit"),
    [
        ("kth_sp2_1996", 28_489, "cores"),
        ("cea_curie_sample", 29_998, "cores"),
        ("metacentrum_wagap_2013", 17_900, "cores"),
        ("mit_supercloud_gpu_2021_sample", 2_368, "gpus"),
        ("alibaba_openb_gpu_2023", 6_203, "gpus"),
    ],
)
def test_real_logs_are_read_whole(name, num_jobs, unit):
    log = read_job_log(SHARED / "traces" / f"{name}.csv.gz")
    assert (len(log.jobs), log.size_unit, log.left_out) == (num_jobs, unit, {})
    assert all(isinstance(job, QueuedJob) and job.wait_s >= 0 for job in log.jobs)
