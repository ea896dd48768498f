"""A log corrects the odds of its class: fully where it saw much, hardly where it saw little."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market
from advisor.pricing.spot_odds import spot_odds, start_odds
from recommender.outcome.spot_history import Watched, start_with_history, with_history

CLASS = spot_odds("V100-SXM-16GB", 1)
WAIT = start_odds("V100-SXM-16GB", 1, Market.SPOT).wait_s
SEEN = st.builds(
    lambda up, down, losses: Watched(up_h=up, down_h=down, num_losses=losses, num_outages=losses),
    st.floats(0.1, 1e5),
    st.floats(0, 1e4),
    st.integers(0, 1000),
)


def test_a_long_log_is_believed():
    seen = Watched(up_h=1e5, down_h=1e5, num_losses=50_000, num_outages=50_000)
    odds = with_history(CLASS, seen)
    assert odds.preemptions_per_h == pytest.approx(0.5, rel=0.02)
    assert odds.outage_h == pytest.approx(2.0, rel=0.15)
    start = start_with_history(WAIT, CLASS, seen)
    assert start.p_at_once == pytest.approx(0.5, abs=0.01)
    # A moment within outages of 2 hours on average is (1 + their dispersion) hours before the end of its own.
    shares = [(i + 0.5) / 100_000 for i in range(50_000)]
    later_s = statistics.fmean(start.after_s(share) - start.at_once_s for share in shares)
    assert later_s / 3600 == pytest.approx(1 + CLASS.dispersion_down, rel=0.15)


def test_a_log_of_an_hour_changes_little():
    odds = with_history(CLASS, Watched(up_h=1.0))
    assert odds.preemptions_per_h == pytest.approx(CLASS.preemptions_per_h, rel=0.25)
    assert odds.outage_h == CLASS.outage_h
    assert start_with_history(WAIT, CLASS, Watched(up_h=1.0)).p_at_once == pytest.approx(
        WAIT.p_at_once, abs=0.1
    )


@given(SEEN)
def test_the_corrected_rate_lies_between_class_and_log_and_is_no_less_sure(seen):
    odds = with_history(CLASS, seen)
    logged = (seen.num_losses + 0.5) / seen.up_h
    low, high = sorted([logged, CLASS.preemptions_per_h])
    assert low * (1 - 1e-9) <= odds.preemptions_per_h <= high * (1 + 1e-9)
    assert CLASS.drift_rate <= odds.sigma_rate <= (CLASS.sigma_rate**2 + CLASS.drift_rate**2) ** 0.5


@given(SEEN)
def test_a_start_never_waits_for_nothing(seen):
    odds = start_with_history(WAIT, CLASS, seen)
    assert 0 < odds.p_at_once < 1
    assert 0 < odds.p50 <= odds.p90


@given(SEEN, st.floats(1.1, 10))
def test_more_preemptions_in_a_log_never_make_a_machine_surer(seen, factor):
    more = Watched(
        up_h=seen.up_h,
        down_h=seen.down_h,
        num_losses=int(seen.num_losses * factor) + 1,
        num_outages=seen.num_outages,
    )
    assert with_history(CLASS, more).preemptions_per_h >= with_history(CLASS, seen).preemptions_per_h
