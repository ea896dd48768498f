"""Drawn spot runs against a slow, plain simulation of each preemption."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.outcome.draws import make_draws
from recommender.outcome.spot import SIGMA_RATE, SIGMA_REACQUIRE, SpotTerms, drawn_hours
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
def test_quantiles_agree_with_the_simulation(work_h: float, rate: float, interval_h: float) -> None:
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
        found, expected = quantiles_of(ours), np.quantile(simulated, [0.5, 0.9])
        assert found.p50 == pytest.approx(expected[0], rel=0.05)
        assert found.p90 == pytest.approx(expected[1], rel=0.12)


def test_luck_never_makes_a_run_shorter_than_its_work_and_checkpoints() -> None:
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
