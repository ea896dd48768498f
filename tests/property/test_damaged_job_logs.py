"""Whatever a job log holds, it is read or refused in words."""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.site_files.job_logs import read_job_log
from recommender.queue.fitted import fit
from tests.jobs import SACCT_COLUMNS, csv_of, make_job, sacct_of, swf_of

JOBS = [make_job(i, size=2**i, wait_s=600.0 * i, walltime_s=90000.0, queue="7") for i in range(12)]
WHOLE = [form(JOBS).encode() for form in (csv_of, sacct_of, swf_of)]
HUGE = "9" * 400
FIELD = st.sampled_from(
    ["", "0", "-1", "1", "1e308", "-1e308", HUGE, "nan", "Unknown", f"{HUGE}-00:00:00", "1:00", "9999-12-31",
     "0001-01-01T00:00:00+14:00", f"gres/gpu={HUGE}", "gres/gpu=1", "CANCELLED", '"', "\x00", "\u0663:\u0664"]
)  # fmt: skip


def read(payload: bytes) -> None:
    """Read and fit; only an InputError may come of it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(payload)
        try:
            log = read_job_log(path)
            fitted = fit(log)
        except InputError:
            return
    assert log.jobs == tuple(sorted(log.jobs))
    assert all(job.wait_s >= 0 for job in log.jobs)
    assert all(0 <= one.p50_s <= one.p90_s for one in fitted.bins)


@given(st.binary(max_size=200))
@example(b"\x1f\x8b")
@example(b"|")
@example(b",")
@example(gzip.compress(WHOLE[0])[:-9])
def test_any_bytes(payload):
    read(payload)


@given(st.sampled_from(WHOLE), st.integers(0, 2000), st.binary(max_size=4), st.integers(0, 4))
def test_a_log_with_a_hole(whole, at, put, cut):
    read(whole[:at] + put + whole[at + cut :])


@given(st.lists(st.lists(FIELD, min_size=11, max_size=11), max_size=15))
def test_any_fields_under_the_columns_of_slurm(rows):
    read("\n".join([SACCT_COLUMNS, *("|".join(row) for row in rows)]).encode())


@given(st.lists(st.lists(FIELD, min_size=5, max_size=5), max_size=15))
def test_any_fields_under_the_columns_of_csv(rows):
    read("\n".join(["submit,start,gpus,walltime,queue", *(",".join(row) for row in rows)]).encode())
