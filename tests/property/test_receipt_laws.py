"""What holds of corrections by receipts, whatever ran."""

import math

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, IterationEstimate
from advisor.predict.interval import ComparedRun, corrected, corrections_of, spread, uncorrected_p50_s
from tests.builders import make_estimate

P50_S = 0.2
sigmas = st.floats(0.02, 0.6)
ratios = st.floats(0.2, 5.0)


def estimate_of(sigma: float) -> IterationEstimate:
    interval = spread(P50_S, sigma)
    return make_estimate("L4", interval)


def run_of(ratio: float, job: str, gpu: str = "L4") -> ComparedRun:
    predicted_s = Interval(p10=0.8, p50=1.0, p90=1.2)
    return ComparedRun(gpu=gpu, job=job, measured_s=ratio, predicted_s=predicted_s, uncorrected_p50_s=1.0)


def after(estimate: IterationEstimate, *runs: ComparedRun) -> IterationEstimate:
    return corrected(estimate, corrections_of(runs).get(estimate.gpu))


def width(estimate: IterationEstimate) -> float:
    return math.log(estimate.device_s.p90 / estimate.device_s.p10)


@given(sigmas, st.lists(ratios, max_size=5))
def test_no_receipts_and_receipts_of_other_gpus_change_nothing(sigma, others):
    estimate = estimate_of(sigma)
    runs = [run_of(ratio, str(i), gpu="T4") for i, ratio in enumerate(others)]
    assert after(estimate) is estimate
    assert after(estimate, *runs) is estimate


@given(sigmas, st.lists(ratios, min_size=1, max_size=12))
def test_a_band_never_widens_and_the_median_moves_to_what_was_seen(sigma, seen):
    estimate = estimate_of(sigma)
    moved = after(estimate, *(run_of(ratio, str(i)) for i, ratio in enumerate(seen)))
    assert width(moved) <= width(estimate) * (1 + 1e-9)
    lowest, highest = min(1.0, *seen), max(1.0, *seen)
    assert lowest * (1 - 1e-9) <= moved.device_s.p50 / P50_S <= highest * (1 + 1e-9)


@given(sigmas, ratios, st.integers(1, 30))
def test_one_more_job_that_agrees_narrows_and_brings_nearer(sigma, ratio, number):
    estimate = estimate_of(sigma)
    runs = [run_of(ratio, str(i)) for i in range(number + 1)]
    fewer, more = after(estimate, *runs[:-1]), after(estimate, *runs)
    assert width(more) <= width(fewer) * (1 + 1e-9)
    # Up to 2 sigma counts.
    wanted = min(max(math.log(ratio), -2 * sigma), 2 * sigma)
    missing = [abs(wanted - math.log(one.device_s.p50 / P50_S)) for one in (fewer, more)]
    assert missing[1] <= missing[0] + 1e-9


@given(sigmas, st.lists(st.floats(0.95, 1.05), min_size=4, max_size=12), st.floats(0.001, 1000.0))
def test_one_wild_run_moves_little(sigma, sane, wild):
    estimate = estimate_of(sigma)
    runs = [run_of(ratio, str(i)) for i, ratio in enumerate(sane)]
    before, now = after(estimate, *runs), after(estimate, *runs, run_of(wild, "wild"))
    assert abs(math.log(now.device_s.p50 / before.device_s.p50)) <= 0.11


@given(sigmas, st.floats(0.001, 1000.0))
def test_even_alone_a_wild_run_moves_less_than_a_sigma(sigma, wild):
    moved = after(estimate_of(sigma), run_of(wild, "wild"))
    assert abs(math.log(moved.device_s.p50 / P50_S)) <= 2 * sigma / (1 + math.pi / 2) + 1e-9


@given(sigmas, ratios, st.integers(1, 20))
def test_runs_of_one_job_count_as_one(sigma, ratio, number):
    estimate = estimate_of(sigma)
    once, often = after(estimate, run_of(ratio, "a")), after(estimate, *[run_of(ratio, "a")] * number)
    assert often.device_s == once.device_s


@given(sigmas, st.lists(ratios, min_size=1, max_size=6))
def test_parts_still_add_up_and_the_way_back_is_known(sigma, seen):
    estimate = estimate_of(sigma)
    moved = after(estimate, *(run_of(ratio, str(i)) for i, ratio in enumerate(seen)))
    for name in ("by_family", "by_method", "by_operator", "by_bound"):
        before, now = sum(getattr(estimate, name).values()), sum(getattr(moved, name).values())
        assert math.isclose(now, before * moved.correction, rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(uncorrected_p50_s(moved), P50_S, rel_tol=1e-9)
