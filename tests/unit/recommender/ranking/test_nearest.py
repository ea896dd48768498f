"""What came nearest where nothing is feasible."""

import pytest

from advisor.core.units import GIB
from advisor.core.values import Interval, Option
from recommender.ranking.frontier import nearest
from tests.builders import HOUR_S, ONE_GPU, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.recommending import recommend

Case = tuple[str, float, float]
# Hours and dollars of the whole job: fast and dear, slow and cheap, and one in between.
CASES: tuple[Case, ...] = (("FAST", 1.0, 100.0), ("SLOW", 10.0, 5.0), ("MIDDLE", 4.0, 30.0))


def options(*cases: Case, too_large: str = "", spread: float = 1.0, **limits: float) -> tuple[Option, ...]:
    estimates = {}
    for name, hours, _ in cases:
        s = hours * 3.6
        interval = Interval(p10=s / spread, p50=s, p90=s * spread)
        limit = GIB if name == too_large else 16 * GIB
        estimates[name, ONE_GPU] = make_estimate(name, interval, memory_limit_bytes=limit)
    return recommend(
        make_trace(),
        estimates,
        {name: make_gpu(name) for name, _, _ in cases},
        [make_plan(name, usd / hours) for name, hours, usd in cases],
        make_job(iterations=1000, **limits),
    ).options


def names(*cases: Case, too_large: str = "", **limits: float) -> list[str]:
    job = make_job(iterations=1000, **limits)
    return [n.option.plan.id for n in nearest(options(*cases, too_large=too_large, **limits), job)]


def test_a_budget_alone_names_the_cheapest():
    assert names(*CASES, budget_usd=1.0) == ["SLOW"]


def test_a_deadline_alone_names_the_fastest():
    assert names(*CASES, deadline_s=60.0) == ["FAST"]


def test_of_two_limits_each_names_who_misses_it_alone():
    # Within 5 h: FAST and MIDDLE miss the budget of 10 dollars alone; SLOW misses the deadline alone.
    assert names(*CASES, budget_usd=10.0, deadline_s=5 * HOUR_S) == ["MIDDLE", "SLOW"]


def test_a_limit_that_nobody_misses_alone_names_nobody():
    """Was: 60 s and a budget that all but one meet named the cheapest, hours late, beside the fastest."""
    assert names(*CASES, budget_usd=1000.0, deadline_s=60.0) == ["FAST"]


def test_where_all_miss_both_all_are_compared():
    assert names(*CASES, budget_usd=1.0, deadline_s=60.0) == ["SLOW", "FAST"]


def test_one_that_is_nearest_in_both_is_named_once():
    cases = (("BEST", 2.0, 20.0), ("WORSE", 3.0, 30.0))
    assert names(*cases, budget_usd=1.0, deadline_s=60.0) == ["BEST"]


def test_what_does_not_fit_is_never_near():
    assert names(*CASES, too_large="SLOW", budget_usd=1.0) == ["MIDDLE"]
    assert names(CASES[0], too_large="FAST", budget_usd=1.0) == []


def test_without_limits_nothing_is_near():
    assert names(*CASES) == []


def test_the_gaps_are_of_the_medians():
    limits = {"budget_usd": 3.0, "deadline_s": 4 * HOUR_S}
    closest = nearest(options(CASES[1], spread=2.0, **limits), make_job(iterations=1000, **limits))
    assert len(closest) == 1
    assert closest[0].over_budget_usd == pytest.approx(2.0)
    assert closest[0].late_s == pytest.approx(6 * HOUR_S)


def test_a_limit_that_is_met_has_no_gap():
    limits = {"budget_usd": 3.0, "deadline_s": 20 * HOUR_S}
    closest = nearest(options(CASES[1], **limits), make_job(iterations=1000, **limits))
    assert closest[0].late_s == 0
