"""Robust times from a clock that lies in all the usual ways."""

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from advisor.payload import operator_timing  # noqa: E402
from advisor.payload.operator_timing import calls_per_sample, sample, summary  # noqa: E402


class Script:
    """A clock that answers as written; the last answer is repeated."""

    device = "cpu"
    cache_bytes = 0
    most_calls = 200

    def __init__(self, *answers_s: float, cycle: tuple[float, ...] = ()) -> None:
        self._answers = itertools.chain(answers_s, itertools.cycle(cycle or answers_s[-1:]))
        self.asked: list[int] = []

    def time_s(self, launch, num_calls: int) -> float:  # noqa: ARG002
        self.asked.append(num_calls)
        return next(self._answers)


def timed(clock: Script) -> operator_timing.Sampled:
    return sample(abs, clock)


def test_a_steady_clock_needs_seven_samples():
    clock = Script(1e-4)
    samples = timed(clock)
    assert (samples.time_s, samples.spread, samples.num_samples) == (1e-4, 0.0, 7)
    assert clock.asked == [1, 1, 20] + 7 * [20]


def test_the_first_call_and_the_rise_of_the_clocks_do_not_count():
    samples = timed(Script(3.0, 8e-4, 4e-4, 2e-4, 1e-4))
    assert (samples.time_s, samples.num_samples) == (1e-4, 7)


def test_a_sample_gets_enough_calls_once_the_time_is_known():
    clock = Script(1.0, 1e-2, 1e-5)
    timed(clock)
    assert clock.asked[:4] == [1, 1, 1, 200]
    assert clock.asked[-1] == 200


def test_one_disturbed_sample_changes_nothing():
    samples = timed(Script(1e-4, 1e-4, 1e-4, 5e-3, 1e-4))
    assert samples.time_s == 1e-4
    assert samples.spread == 0.0


def test_where_samples_scatter_more_are_taken():
    samples = timed(Script(1.0, 1.0, 1.0, cycle=(0.9, 1.0, 1.2)))
    assert samples.num_samples == operator_timing.MOST_SAMPLES
    assert samples.spread == pytest.approx(0.1)


def test_a_clock_that_never_settles_ends():
    clock = Script(1.0, cycle=(1.0, 2.0, 4.0))
    timed(clock)
    assert len(clock.asked) == 2 + operator_timing.WARM_UPS + operator_timing.MOST_SAMPLES


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_median_and_deviation(samples):
    median_s, spread = summary(samples)
    assert median_s == statistics.median(samples)
    assert spread >= 0
    assert summary([2 * value for value in samples]) == pytest.approx((2 * median_s, spread))


@given(st.floats(1e-9, 10.0), st.integers(1, 10_000))
def test_calls_fill_a_sample_or_reach_their_bound(call_s, most):
    calls = calls_per_sample(call_s, most)
    assert 1 <= calls <= most
    assert calls * call_s >= operator_timing.SAMPLE_S * 0.999 or calls == most
    assert (calls - 1) * call_s <= operator_timing.SAMPLE_S * 1.001
