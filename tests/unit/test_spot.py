"""Drawn spot runs against a slow, plain simulation of each preemption."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.outcome.draws import make_draws
from recommender.outcome.spot import (
    SIGMA_RATE,
    SIGMA_REACQUIRE,
    SpotTerms,
    drawn_hours,
    makespan_and_billed_h,
)
from tests.builders import quantiles_of


def simulate(work_h: float, terms: SpotTerms, rng: np.random.Generator) -> tuple[float, float]:
    """Hours until done and hours billed of one run, preemption by preemption."""
    rate = terms.preemptions_per_h * np.exp(SIGMA_RATE * rng.normal())
    reacquire_h = terms.reacquire_h * np.exp(SIGMA_REACQUIRE * rng.normal())
    interval = min(terms.checkpoint_interval_h or work_h, work_h)
    done = total = billed = 0.0
    while done < work_h - 1e-12:
        segment = min(interval, work_h - done)
        need = segment + (terms.checkpoint_h if work_h > interval else 0.0)
        until_preempted = rng.exponential(1 / rate)
        if until_preempted >= need:
            done, total, billed = done + segment, total + need, billed + need
            continue
        total, billed = total + until_preempted, billed + until_preempted
        restarted = False
        while not restarted:
            total += rng.exponential(reacquire_h)
            lasts = rng.exponential(1 / rate)
            restarted = lasts >= terms.restart_h
            spent = min(lasts, terms.restart_h)
            total, billed = total + spent, billed + spent
    return total, billed


@pytest.mark.parametrize(
    ("work_h", "rate", "interval_h"), [(8, 0.1, 0.5), (8, 0.4, 1.0), (40, 0.1, 0.5), (20, 0.4, 0.3)]
)
def test_quantiles_agree_with_the_simulation(work_h, rate, interval_h):
    """Within 5 % at the median and 12 % at p90, of makespan and of the bill."""
    terms = SpotTerms(preemptions_per_h=rate, checkpoint_interval_h=interval_h)
    rng = np.random.default_rng(7)
    runs = np.array([simulate(work_h, terms, rng) for _ in range(3000)])
    draws = make_draws(np.random.default_rng(0))
    drawn = drawn_hours(
        np.full_like(draws.wait, work_h),
        terms,
        rate_per_h=rate * np.exp(SIGMA_RATE * draws.preemption_rate),
        reacquire_h=terms.reacquire_h * np.exp(SIGMA_REACQUIRE * draws.reacquire),
        z=draws.preemption,
    )
    for simulated, ours in zip(runs.T, drawn, strict=True):
        computed, expected = quantiles_of(ours), np.quantile(simulated, [0.5, 0.9])
        assert computed.p50 == pytest.approx(expected[0], rel=0.05)
        assert computed.p90 == pytest.approx(expected[1], rel=0.12)


def hyperexponential(
    mean: float, dispersion: float, rng: np.random.Generator, *, is_rest: bool = False
) -> float:
    """Of two exponentials with balanced means: many short times and few long ones.

    ``is_rest`` is what is left of one at a random moment, which is likelier to fall into a long one.
    """
    p = 0.5 * (1 + np.sqrt((dispersion - 1) / (dispersion + 1)))
    share = p if rng.random() < (0.5 if is_rest else p) else 1 - p
    return float(rng.exponential(mean / (2 * share)))


def simulate_dispersed(work_h: float, terms: SpotTerms, rng: np.random.Generator) -> tuple[float, float]:
    """As ``simulate`` at a sure rate, with times up and down that vary more than exponential ones."""
    assert terms.checkpoint_interval_h is not None
    step_h = terms.checkpoint_interval_h + terms.checkpoint_h
    left = round(work_h / terms.checkpoint_interval_h)
    total = billed = restart_h = 0.0
    while True:
        up_h = hyperexponential(1 / terms.preemptions_per_h, terms.dispersion_up, rng, is_rest=restart_h == 0)
        needed_h = restart_h + left * step_h
        if up_h >= needed_h:
            return total + needed_h, billed + needed_h
        left -= int(max(up_h - restart_h, 0.0) / step_h)
        billed, restart_h = billed + up_h, terms.restart_h
        total += up_h + hyperexponential(terms.reacquire_h, terms.dispersion_down, rng)


@pytest.mark.parametrize(("work_h", "rate"), [(4, 0.3), (12, 0.3), (48, 0.3), (48, 0.8)])
def test_dispersed_runs_agree_with_their_simulation(work_h, rate):
    """The bill within 8 % at the median and 15 % at p90, the makespan within 15 and 20 %.

    The closed form has no memory: it is the mean of what is drawn, and a little above that of many short
    times up among few long ones.
    """
    terms = SpotTerms(preemptions_per_h=rate, reacquire_h=1.0, dispersion_up=5.0, dispersion_down=2.25)
    rng = np.random.default_rng(11)
    runs = np.array([simulate_dispersed(work_h, terms, rng) for _ in range(3000)])
    draws = make_draws(np.random.default_rng(0))
    sure = np.ones_like(draws.wait)
    makespan, billed = drawn_hours(
        sure * work_h, terms, rate_per_h=sure * rate, reacquire_h=sure, z=draws.preemption
    )
    for simulated, ours, within in ((runs[:, 0], makespan, (0.15, 0.2)), (runs[:, 1], billed, (0.08, 0.15))):
        computed, expected = quantiles_of(ours), np.quantile(simulated, [0.5, 0.9])
        assert computed.p50 == pytest.approx(expected[0], rel=within[0])
        assert computed.p90 == pytest.approx(expected[1], rel=within[1])


def test_as_many_runs_are_undisturbed_as_in_the_simulation():
    """Within a tenth: the median of short runs is then their work and checkpoints, and nothing more."""
    terms = SpotTerms(preemptions_per_h=0.3, reacquire_h=1.0, dispersion_up=5.0, dispersion_down=2.25)
    rng, draws = np.random.default_rng(5), make_draws(np.random.default_rng(0))
    sure = np.ones_like(draws.wait)
    for work_h in (1.0, 4.0, 12.0):
        _, billed = drawn_hours(
            sure * work_h, terms, rate_per_h=sure * 0.3, reacquire_h=sure, z=draws.preemption
        )
        least_h = work_h * (1 + terms.checkpoint_h / (terms.checkpoint_interval_h or work_h))
        runs = [simulate_dispersed(work_h, terms, rng)[1] for _ in range(1000)]
        simulated = np.mean(np.array(runs) <= least_h + 1e-9)
        assert np.mean(billed <= least_h + 1e-9) == pytest.approx(simulated, abs=0.1)


@settings(max_examples=50)
@given(st.floats(0.5, 100), st.floats(0, 2), st.floats(0.1, 3), st.floats(1, 6), st.floats(1, 4))
def test_worse_luck_is_never_cheaper(work_h, rate, away_h, up, down):
    terms = SpotTerms(preemptions_per_h=rate, dispersion_up=up, dispersion_down=down)
    z = np.linspace(-3.2, 3.2, 101)
    sure = np.ones_like(z)
    for hours in drawn_hours(sure * work_h, terms, rate_per_h=sure * rate, reacquire_h=sure * away_h, z=z):
        ends = hours[np.isfinite(hours)]
        assert (np.diff(ends) >= -1e-9 * ends[:-1]).all()


def test_dispersion_leaves_the_mean_to_the_closed_form():
    draws = make_draws(np.random.default_rng(0))
    sure = np.ones_like(draws.wait)
    even, uneven = (
        SpotTerms(preemptions_per_h=0.3, dispersion_up=up, dispersion_down=down)
        for up, down in ((1, 1), (5, 2))
    )
    closed = makespan_and_billed_h(sure * 24, even, rate_per_h=0.3, reacquire_h=0.8)
    for terms in (even, uneven):
        drawn = drawn_hours(
            sure * 24, terms, rate_per_h=sure * 0.3, reacquire_h=sure * 0.8, z=draws.preemption
        )
        for hours, expected in zip(drawn, closed, strict=True):
            assert hours.mean() == pytest.approx(expected[0], rel=0.01)


def test_luck_never_makes_a_run_shorter_than_its_work_and_checkpoints():
    draws = make_draws(np.random.default_rng(0))
    work = np.full_like(draws.wait, 10.0)
    rate = np.full_like(work, 0.5)
    makespan, billed = drawn_hours(
        work, SpotTerms(preemptions_per_h=0.5), rate_per_h=rate, reacquire_h=rate, z=draws.preemption
    )
    floor = 10 + 20 * SpotTerms().checkpoint_h
    assert makespan.min() >= floor - 1e-9
    assert billed.min() >= floor - 1e-9
    assert (makespan >= billed - 1e-9).all()


def test_many_short_segments_lose_as_many_uniform_parts_as_poisson_says():
    """The squared variation of n parts is the mean square over the squared mean, over n."""
    rate, work_h, num_failures = 0.1, 200.0, 20.0
    terms = SpotTerms(checkpoint_interval_h=0.01, checkpoint_h=0.0, restart_h=0.0)
    z = np.array([0.0, 1.0])
    _, billed = drawn_hours(
        np.full(2, work_h), terms, rate_per_h=np.full(2, rate), reacquire_h=np.zeros(2), z=z
    )
    median, above = billed - work_h
    variation = np.expm1(np.log(above / median) ** 2)
    assert variation == pytest.approx((1 / 3) / (1 / 2) ** 2 / num_failures, rel=0.01)
