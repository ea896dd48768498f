"""Laws of the foreseen waits: order, permutation, censoring, bursts, shifts of the clock, and coverage."""

import math
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.units import DAY_S
from advisor.site_files.job_logs import read_job_log
from recommender.outcome.draws import waits as drawn
from recommender.queue.fitted import WaitQuantiles, fit
from recommender.queue.grids import LEVELS, grid_of, to_log_minutes, to_waits_s
from recommender.queue.scoring import check, pinball
from recommender.queue.waits import (
    ALL,
    WALLTIME_BINS,
    QueuedJob,
    Waits,
    replay,
    size_bin,
    walltime_bin,
    widened,
)
from tests.jobs import BEGINNING_S, job_log, make_job

WAITS = st.one_of(st.just(0.0), st.floats(0, 1e6))
USERS = st.integers(0, 10**6).map(str)  # hardly ever the same: bursts have laws of their own
JOB = st.builds(
    make_job,
    st.integers(0, 50).map(float),
    wait_s=WAITS,
    size=st.sampled_from([0, 0.5, 1, 2, 8]),
    walltime_s=st.sampled_from([-1.0, 600.0, 1e5, 1e6]),
    queue=st.sampled_from(["", "a", "b"]),
    user=USERS,
)
LOGS = st.lists(JOB, min_size=10, max_size=120, unique_by=lambda job: job.user)
VALUES = st.lists(st.floats(0, 20), min_size=1, max_size=60).map(sorted)


def by_bin(fitted: WaitQuantiles) -> dict[object, np.ndarray]:
    return {one.key: np.array(one.waits_s) for one in fitted.bins}


def after(jobs: list[QueuedJob]) -> Waits:
    """What is known once all jobs have started."""
    waits = Waits()
    list(replay(jobs, waits))
    waits.advance(max(job.start_s for job in jobs))
    return waits


@given(LOGS)
def test_quantiles_are_in_order(jobs):
    fitted = fit(job_log(jobs))
    assert all(0 <= one.p50_s <= one.p90_s for one in fitted.bins)
    waits = Waits()
    for job, expected, state in replay(jobs, waits):
        if expected is not None:
            foreseen = waits.reading(job.submit_s, state).of(expected)
            assert (np.diff(foreseen) >= -1e-12).all()
            assert foreseen[0] >= 0


@given(LOGS, st.randoms(use_true_random=False))
def test_the_order_of_a_log_changes_nothing(jobs, chance):
    shuffled = list(jobs)
    chance.shuffle(shuffled)
    assert fit(job_log(shuffled)) == fit(job_log(jobs))
    assert list(replay(shuffled, Waits())) == list(replay(jobs, Waits()))


@given(LOGS, st.lists(st.integers(0, 50), min_size=1, max_size=30), st.sampled_from([1, 8]))
def test_jobs_that_wait_still_never_shorten_a_forecast(jobs, minutes, size):
    last_s = max(job.start_s for job in jobs)
    queued = [
        make_job(minute, wait_s=math.inf, size=size, user=f"waits {number}")
        for number, minute in enumerate(minutes)
        if BEGINNING_S + 60 * minute <= last_s
    ]
    without, bins = by_bin(fit(job_log(jobs))), by_bin(fit(job_log([*jobs, *queued])))
    for key, waits_s in without.items():
        assert (bins[key] >= waits_s * (1 - 1e-9) - 1e-6).all()


@given(LOGS, st.data())
def test_a_burst_that_is_logged_twice_changes_nothing(jobs, data):
    again = data.draw(st.lists(st.sampled_from(jobs), max_size=40))
    assert fit(job_log([*jobs, *again])).bins == fit(job_log(jobs)).bins


@given(LOGS, st.lists(st.integers(0, 240), min_size=1, max_size=60))
def test_a_burst_weighs_as_much_as_one_job(jobs, seconds):
    """However many alike jobs join one that was submitted first and started last."""
    one = make_job(-1, wait_s=2e6, user="burst")
    rest = [replace(one, submit_s=one.submit_s + after_s) for after_s in seconds]
    assert fit(job_log([*jobs, one, *rest])).bins[0].num_jobs == len(jobs) + 1


@given(LOGS, st.integers(-(10**8), 10**8))
def test_a_shift_of_all_times_changes_nothing(jobs, shift_s):
    shifted = [
        replace(job, submit_s=job.submit_s + shift_s, start_s=job.submit_s + shift_s + job.wait_s)
        for job in jobs
    ]
    before, later = by_bin(fit(job_log(jobs))), by_bin(fit(job_log(shifted)))
    assert before.keys() == later.keys()
    for key, waits_s in before.items():
        assert later[key] == pytest.approx(waits_s, rel=1e-4, abs=1e-3)


@given(
    st.sampled_from([(2026, 3, 29), (2026, 10, 25), (2026, 7, 1)]),
    st.lists(st.tuples(st.integers(-240, 480), st.integers(0, 600)), min_size=1, max_size=20),
)
def test_neither_change_of_clocks_makes_a_wait_an_hour_wrong(day, minutes):
    """Local times of Berlin, around the night in which its clock changes, and one in which it does not."""
    zone = ZoneInfo("Europe/Berlin")
    midnight_s = datetime(*day, tzinfo=zone).timestamp()
    known = {f"u{i}": 60.0 * wait for i, (_, wait) in enumerate(minutes)}
    rows = ["submit,start,gpus,user"]
    for user, (submit, wait) in zip(known, minutes, strict=True):
        times = [datetime.fromtimestamp(midnight_s + 60 * at, zone) for at in (submit, submit + wait)]
        rows.append(",".join([*(f"{time:%Y-%m-%dT%H:%M:%S}" for time in times), "1", user]))
    rows.append("2026-07-01T00:00:00,2026-07-01T00:01:00,1,last")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_text("\n".join(rows))
        log = read_job_log(path, zone)
    read = {job.user: job.wait_s for job in log.jobs if job.user != "last"}
    assert read == {user: known[user] for user in read}
    assert len(minutes) - len(read) == sum(log.left_out.values())
    if day != (2026, 10, 25):
        assert len(read) == len(minutes)


@given(VALUES, st.floats(0, 5))
def test_a_longer_wait_never_lowers_a_quantile(values, more):
    longer = grid_of(sorted([*values, values[-1] + more]))
    held = [i for i, level in enumerate(LEVELS) if level <= len(values) / (len(values) + 1)]
    assert all(longer[i] >= grid_of(values)[i] - 1e-9 for i in held)


@given(VALUES)
def test_quantiles_rise_with_the_probability(values):
    grid = grid_of(values)
    assert values[0] - 1e-9 <= grid[0]
    assert all(low <= high + 1e-9 for low, high in pairwise(grid))


@given(LOGS)
def test_the_bin_of_all_holds_the_quantiles_of_its_jobs(jobs):
    waits = after(jobs)
    assert waits.expect(ALL) == grid_of(sorted(to_log_minutes(job.wait_s) for job in jobs))
    assert dict(waits.bins())[ALL] == len(jobs)


@given(LOGS)
def test_a_bin_lies_between_its_own_waits_and_the_wider_bin(jobs):
    waits = after(jobs)
    for which, count in waits.bins():
        expected = waits.expect(which)
        wider = next((bin_ for bin_ in widened(which)[1:]), None)
        if wider is None:
            continue
        assert expected is not None
        alike = [to_log_minutes(job.wait_s) for job in jobs if which in _bins(job)]
        assert len(alike) == count
        own, parent = grid_of(sorted(alike)), waits.expect(wider)
        assert parent is not None
        for value, a, b in zip(expected, own, parent, strict=True):
            assert min(a, b) - 1e-9 <= value <= max(a, b) + 1e-9


def _bins(job: QueuedJob) -> tuple[object, ...]:
    size, walltime = size_bin(job.size), walltime_bin(job.walltime_s)
    return (*widened((size, walltime, job.queue)), *widened((size, None, job.queue)))


@given(LOGS)
def test_nothing_is_known_before_it_happened(jobs):
    """A job that starts after all others were submitted changes no earlier expectation."""
    last_s = max(job.submit_s for job in jobs)
    late = make_job(-1, wait_s=last_s - make_job(-1).submit_s + 1, user="late")
    with_late = [item.grid for item in replay([late, *jobs], Waits()) if item.job is not late]
    assert with_late == [item.grid for item in replay(jobs, Waits())]


@given(LOGS)
def test_what_is_drawn_has_the_quantiles_of_the_fit(jobs):
    from statistics import NormalDist

    from advisor.core.values import EmpiricalWait

    fitted = fit(job_log(jobs))
    at = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
    for one in fitted.bins:
        wait = EmpiricalWait(p50=one.p50_s, p90=one.p90_s, levels=fitted.levels, waits_s=one.waits_s)
        assert drawn(wait, at) == pytest.approx(one.waits_s, rel=1e-9, abs=1e-6)


@given(WAITS)
def test_log_minutes_and_back(wait_s):
    assert to_waits_s(np.array(to_log_minutes(wait_s))) == pytest.approx(wait_s, rel=1e-9, abs=1e-6)


@given(st.floats(0, 1e5), st.floats(0, 1e5))
def test_bins_of_sizes_and_walltimes_keep_order(a, b):
    low, high = sorted([a, b])
    assert WALLTIME_BINS.index(walltime_bin(low)) <= WALLTIME_BINS.index(walltime_bin(high))
    if size_bin(low) == size_bin(high) and low >= 1:
        assert high < 2 * low


@given(st.none() | st.text(), st.none() | st.text(), st.none() | st.text())
def test_bins_only_widen_and_end_with_all(size, walltime, queue):
    bins = widened((size, walltime, queue))
    totals = [sum(part is not None for part in one) for one in bins]
    assert totals == sorted(totals, reverse=True)
    assert (bins[0], bins[-1]) == ((size, walltime, queue), ALL)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0, 100), st.sampled_from([0.5, 0.9]))
def test_no_constant_has_less_pinball_loss_than_the_quantile(values, x, p):
    def loss(at: float) -> float:
        return sum(pinball(value, at, p) for value in values)

    best = float(np.quantile(values, p, method="inverted_cdf"))
    assert loss(best) <= loss(x) + 1e-6


@settings(max_examples=3)
@given(st.integers(0, 2**32 - 1), st.floats(0.2, 1.5))
def test_coverage_is_right_where_nothing_changes(seed, sigma):
    """Log-normal waits of two sizes, independent of each other: 0.5 and 0.9 within 4 points of 1,800 jobs."""
    rng = np.random.default_rng(seed)
    medians_s = {1: 600.0, 8: 7200.0}
    jobs = [
        make_job(10.0 * i, size=size, wait_s=medians_s[size] * float(rng.lognormal(0, sigma)))
        for i, size in enumerate(rng.choice([1, 8], 6000).tolist())
    ]
    forecast = check(job_log(jobs))
    assert forecast.num_checked == 1800
    assert forecast.num_frozen >= 1800 * 600 / DAY_S
    for score in (forecast.online, forecast.frozen):
        assert score.coverage.p50 == pytest.approx(0.5, abs=0.04)
        assert score.coverage.p90 == pytest.approx(0.9, abs=0.04)
        assert score.tails.p10 == pytest.approx(0.1, abs=0.03)
        assert score.tails.p99 >= 0.975
