"""Later starts: told where every day says the same, and only there."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.values import Layout, Market, PricePoint
from advisor.report.words import sentence
from recommender.outcome.spot import SpotTerms
from recommender.ranking.later_starts import cheapest_start, with_shifts
from tests.builders import HOUR_S, ONE_GPU, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.recommending import recommend

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def history(price: Callable[[datetime], float], days: int = 30, step_h: int = 1) -> list[PricePoint]:
    """A point each ``step_h`` hours of the last days."""
    times = [NOW - timedelta(hours=h) for h in range(days * 24, -1, -step_h)]
    return [
        PricePoint(
            provider="aws", instance_type="x.xlarge", region="us-east-1", zone=None, market=Market.SPOT,
            usd_per_h=price(time), observed_at=time,
        )
        for time in times
    ]  # fmt: skip


def night(time: datetime) -> float:
    """2 dollars by day, 1 from 20:00 to 04:00."""
    return 1.0 if time.hour >= 20 or time.hour < 4 else 2.0


def test_a_job_of_four_hours_waits_for_the_night():
    shift = cheapest_start(history(night), run_s=4 * HOUR_S, now=NOW)
    assert shift is not None
    assert shift.delay_h == 8  # from 12:00 to 20:00, the first of five equally cheap hours
    assert shift.start_at == datetime(2026, 11, 21, 20, tzinfo=UTC)
    assert shift.saving_usd == pytest.approx(4.0)
    assert shift.usd == pytest.approx(8.0)
    assert shift.spread_usd == pytest.approx(0.0, abs=1e-9)
    assert shift.num_days == 29


def test_what_is_longer_than_the_night_saves_less():
    shift = cheapest_start(history(night), run_s=12 * HOUR_S, now=NOW)
    assert shift is not None
    # At once: 8 h by day and 4 by night, 20 dollars; from 16:00 or later the whole night: 16.
    assert (shift.usd, shift.saving_usd) == (pytest.approx(20.0), pytest.approx(4.0))


@pytest.mark.parametrize("run_h", [24, 48])
def test_whole_days_cost_the_same_whenever_they_begin(run_h):
    assert cheapest_start(history(night), run_s=run_h * HOUR_S, now=NOW) is None


def test_by_night_there_is_nothing_to_wait_for():
    at_night = NOW - timedelta(hours=14)
    assert cheapest_start(history(night), run_s=4 * HOUR_S, now=at_night) is None


def test_a_constant_price_says_nothing():
    assert cheapest_start(history(lambda _: 2.0), run_s=HOUR_S, now=NOW) is None


def test_less_than_a_hundredth_says_nothing():
    slightly = history(lambda time: 2.0 - 0.015 * (night(time) == 1.0))
    assert cheapest_start(slightly, run_s=HOUR_S, now=NOW) is None


def test_two_weeks_are_the_least():
    assert cheapest_start(history(night, days=13), run_s=HOUR_S, now=NOW) is None
    assert cheapest_start(history(night, days=15), run_s=HOUR_S, now=NOW) is not None
    # Fourteen days to compare: a run of three days leaves none of them for the last three.
    assert cheapest_start(history(night, days=15), run_s=60 * HOUR_S, now=NOW) is None
    assert cheapest_start([], run_s=HOUR_S, now=NOW) is None


def test_two_prices_a_fortnight_apart_are_no_pattern():
    assert cheapest_start(history(night, days=20, step_h=20 * 24), run_s=HOUR_S, now=NOW) is None


def test_a_saving_that_comes_and_goes_says_nothing():
    """Cheap nights every fourth day alone: 0.25 dollars on average, 0.44 from day to day."""

    def price(time: datetime) -> float:
        return night(time) if (time + timedelta(hours=8)).toordinal() % 4 == 0 else 2.0

    assert cheapest_start(history(price), run_s=4 * HOUR_S, now=NOW) is None


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(0.5, 30))
def test_what_is_told_is_true_of_the_mean_of_days(seed, run_h):
    draw = np.random.default_rng(seed)
    by_hour = draw.uniform(1, 3, 24)
    points = history(lambda time: float(by_hour[time.hour] * draw.uniform(0.8, 1.2)), days=20)
    shift = cheapest_start(points, run_s=run_h * HOUR_S, now=NOW)
    if shift is None:
        return
    assert 0 < shift.delay_h < 24
    assert shift.saving_usd > shift.spread_usd >= 0
    assert shift.saving_usd < shift.usd
    shuffled = [points[i] for i in draw.permutation(len(points))]
    assert cheapest_start(shuffled, run_s=run_h * HOUR_S, now=NOW) == shift


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_noise_alone_is_hardly_ever_a_pattern(seed):
    """The best of 24 means of 29 days stays far below the standard deviation of a day."""
    draw = np.random.default_rng(seed)
    points = history(lambda _: float(draw.uniform(1, 2)), days=30)
    assert cheapest_start(points, run_s=HOUR_S, now=NOW) is None


def test_a_run_takes_some_time():
    with pytest.raises(ValueError, match="more than 0 s"):
        cheapest_start(history(night), run_s=0.0, now=NOW)


def test_a_later_start_saves_on_every_node():
    def saved_usd(num_nodes: int) -> float:
        layout = Layout(gpus_per_node=1, num_nodes=num_nodes)
        plan = make_plan("A", 2.0 * num_nodes, market=Market.SPOT, layout=layout)
        estimate = make_estimate("A", 0.1 * num_nodes, layout=layout)
        options = recommend(
            make_trace(), {("A", layout): estimate}, {"A": make_gpu("A")}, [plan], make_job(),
            spot=SpotTerms(preemptions_per_h=0.0),
        )  # fmt: skip
        (option,) = with_shifts(options, {"A": history(night)}, NOW).options
        return float(str(option.reasons[-1].facts["saving_usd"]))

    assert saved_usd(2) == pytest.approx(2 * saved_usd(1), rel=1e-6)


def test_the_option_says_so_and_the_others_do_not():
    plans = [make_plan("A", 2.0, market=Market.SPOT), make_plan("B", 2.0)]
    recommendation = recommend(
        make_trace(),
        {(name, ONE_GPU): make_estimate(name, 0.1) for name in "AB"},
        {name: make_gpu(name) for name in "AB"},
        plans,
        make_job(),
    )
    a, b = with_shifts(recommendation, {"A": history(night)}, NOW).options
    assert b == recommendation.options[1]
    assert a.reasons[:-1] == recommendation.options[0].reasons
    assert sentence(a.reasons[-1]).startswith(
        "a start 8 h later (20:00 UTC) was cheaper over the last 29 days: $"
    )
