"""What the first steps say of the whole job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Interval, Quantiles
from advisor.receipt.guard import LEAST_STEPS, Expected, pace_of

EXPECTED = Expected(
    step_s=Interval(p10=0.9, p50=1.0, p90=1.2),
    time_s=Quantiles(p50=4600.0, p90=6000.0),
    cost_usd=Quantiles(p50=2.0, p90=3.0),
    num_steps=3600,
    usd_per_h=1.5,
)


def steps(p50: float) -> Interval:
    return Interval(p10=p50 * 0.9, p50=p50, p90=p50 * 1.1)


def test_few_steps_say_nothing():
    assert pace_of(EXPECTED, steps(1.0), LEAST_STEPS - 1) is None
    assert pace_of(EXPECTED, None, LEAST_STEPS) is None


@pytest.mark.parametrize(
    ("step_s", "held", "is_slower"), [(0.5, False, False), (1.2, True, False), (1.3, False, True)]
)
def test_only_slower_than_p90_is_slower(step_s, held, is_slower):
    pace = pace_of(EXPECTED, steps(step_s), 100)
    assert (pace.held, pace.is_slower) == (held, is_slower)


@given(st.floats(0.01, 100))
def test_the_job_differs_by_its_steps_alone(step_s):
    pace = pace_of(EXPECTED, steps(step_s), 100)
    # Waiting and start-up stay: 1,000 s of the 4,600.
    assert pace.job_s == pytest.approx(1000 + 3600 * step_s)
    assert pace.job_usd == pytest.approx(2.0 + 1.5 * (step_s - 1))


def test_what_is_unknown_stays_unknown():
    unpriced = Expected(
        step_s=EXPECTED.step_s,
        time_s=EXPECTED.time_s,
        cost_usd=EXPECTED.cost_usd,
        num_steps=3600,
        usd_per_h=None,
    )
    pace = pace_of(unpriced, steps(2.0), 100)
    assert (pace.job_s, pace.job_usd) == (8200.0, None)
