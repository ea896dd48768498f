"""Laws of the foreseen waits: order, permutation, longer waits, and coverage where nothing changes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.queue.fitted import fit
from recommender.queue.foresight import check, pinball
from recommender.queue.job_log import QueuedJob
from recommender.queue.waits import (
    ALL,
    WALLTIME_BINS,
    Waits,
    fallbacks,
    quantile,
    replay,
    size_bin,
    to_log_minutes,
    to_wait_s,
    walltime_bin,
)
from tests.jobs import job_log, make_job

WAITS = st.one_of(st.just(0.0), st.floats(0, 1e6))
JOB = st.builds(
    make_job,
    st.integers(0, 50).map(float),
    wait_s=WAITS,
    size=st.sampled_from([0, 0.5, 1, 2, 8]),
    walltime_s=st.sampled_from([-1.0, 600.0, 1e5, 1e6]),
    queue=st.sampled_from(["", "a", "b"]),
)
LOGS = st.lists(JOB, min_size=10, max_size=120)
VALUES = st.lists(st.floats(0, 20), min_size=1, max_size=60).map(sorted)


@given(LOGS)
def test_the_median_is_never_above_the_90_percent_quantile(jobs: list[QueuedJob]) -> None:
    found = fit(job_log(jobs))
    assert all(0 <= one.p50_s <= one.p90_s for one in found.bins)
    waits = Waits()
    for _, expected in replay(jobs, waits):
        if expected is not None:
            foreseen = waits.corrected(expected)
            assert 0 <= foreseen.p50 <= foreseen.p90


@given(LOGS, st.randoms(use_true_random=False))
def test_the_order_of_a_log_changes_nothing(jobs: list[QueuedJob], chance: random.Random) -> None:
    shuffled = list(jobs)
    chance.shuffle(shuffled)
    assert fit(job_log(shuffled)) == fit(job_log(jobs))
    assert list(replay(shuffled, Waits())) == list(replay(jobs, Waits()))


@given(VALUES, st.floats(0.01, 0.99), st.floats(0, 5))
def test_a_longer_wait_never_lowers_a_quantile(values: list[float], p: float, more: float) -> None:
    before = quantile(values, p)
    assert quantile(sorted([*values, values[-1] + more]), p) >= before - 1e-12


@given(VALUES, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_quantiles_rise_with_the_probability(values: list[float], p: float, q: float) -> None:
    low, high = sorted([p, q])
    assert values[0] <= quantile(values, low) <= quantile(values, high) + 1e-12 <= values[-1] + 1e-9


@given(LOGS)
def test_a_bin_holds_the_quantiles_of_its_jobs(jobs: list[QueuedJob]) -> None:
    waits = Waits()
    list(replay(jobs, waits))
    waits.advance(float("inf"))
    everything = sorted(to_log_minutes(job.wait_s) for job in jobs)
    expected = waits.expect_in(ALL)
    assert expected is not None
    assert (expected.p50, expected.p90) == (quantile(everything, 0.5), quantile(everything, 0.9))
    assert dict(waits.bins())[ALL] == len(jobs)


@given(LOGS)
def test_nothing_is_known_before_it_happened(jobs: list[QueuedJob]) -> None:
    """A job that starts after all others were submitted changes no earlier expectation."""
    last_s = max(job.submit_s for job in jobs)
    late = make_job(-1, wait_s=last_s - make_job(-1).submit_s + 1)
    with_late = [item for item in replay([late, *jobs], Waits()) if item[0] is not late]
    assert with_late == list(replay(jobs, Waits()))


@given(WAITS)
def test_log_minutes_and_back(wait_s: float) -> None:
    assert to_wait_s(to_log_minutes(wait_s)) == pytest.approx(wait_s, rel=1e-9, abs=1e-6)


@given(st.floats(0, 1e5), st.floats(0, 1e5))
def test_bins_of_sizes_and_walltimes_keep_order(a: float, b: float) -> None:
    low, high = sorted([a, b])
    assert WALLTIME_BINS.index(walltime_bin(low)) <= WALLTIME_BINS.index(walltime_bin(high))
    if size_bin(low) == size_bin(high) and low >= 1:
        assert high < 2 * low


@given(st.none() | st.text(), st.none() | st.text(), st.none() | st.text())
def test_fallbacks_only_widen_and_end_with_all(size: str, walltime: str, queue: str) -> None:
    bins = fallbacks(size, walltime, queue)
    told = [sum(part is not None for part in one) for one in bins]
    assert told == sorted(told, reverse=True)
    assert (bins[0], bins[-1]) == ((size, walltime, queue), ALL)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0, 100), st.sampled_from([0.5, 0.9]))
def test_no_constant_has_less_pinball_loss_than_the_quantile(values: list[float], x: float, p: float) -> None:
    def loss(at: float) -> float:
        return sum(pinball(value, at, p) for value in values)

    best = float(np.quantile(values, p, method="inverted_cdf"))
    assert loss(best) <= loss(x) + 1e-6


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.2, 2.0))
def test_coverage_is_right_where_nothing_changes(seed: int, sigma: float) -> None:
    """Log-normal waits of two sizes, independent of each other: 0.5 and 0.9 within 4 points of 1,800 jobs."""
    rng = np.random.default_rng(seed)
    medians_s = {1: 600.0, 8: 7200.0}
    jobs = [
        make_job(10.0 * i, size=size, wait_s=medians_s[size] * float(rng.lognormal(0, sigma)))
        for i, size in enumerate(rng.choice([1, 8], 6000).tolist())
    ]
    found = check(job_log(jobs))
    assert found.num_checked == 1800
    assert found.foreseen.coverage.p50 == pytest.approx(0.5, abs=0.04)
    assert found.foreseen.coverage.p90 == pytest.approx(0.9, abs=0.04)
