"""What came nearest where nothing is feasible."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.units import GIB
from advisor.core.values import Interval, Option, Recommendation
from recommender.ranking import frontier
from recommender.ranking.frontier import nearest
from tests.builders import HOUR_S, ONE_GPU, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import said
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


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"budget_usd": 1.0}, ["SLOW"]),
        ({"deadline_s": 60.0}, ["FAST"]),
        # Within 5 h: FAST and MIDDLE miss the budget of 10 dollars alone; SLOW misses the deadline alone.
        ({"budget_usd": 10.0, "deadline_s": 5 * HOUR_S}, ["MIDDLE", "SLOW"]),
        # A budget that all but one meet once named the cheapest, hours late, beside the fastest.
        ({"budget_usd": 1000.0, "deadline_s": 60.0}, ["FAST"]),
        # Where all miss both, all are compared.
        ({"budget_usd": 1.0, "deadline_s": 60.0}, ["SLOW", "FAST"]),
        ({"budget_usd": 1.0, "too_large": "SLOW"}, ["MIDDLE"]),
        ({}, []),
    ],
)
def test_each_limit_names_who_misses_it_by_least(limits, named):
    assert names(*CASES, **limits) == named


def test_one_that_is_nearest_in_both_is_named_once_and_what_does_not_fit_never():
    cases = (("BEST", 2.0, 20.0), ("WORSE", 3.0, 30.0))
    assert names(*cases, budget_usd=1.0, deadline_s=60.0) == ["BEST"]
    assert names(CASES[0], too_large="FAST", budget_usd=1.0) == []


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


def answer(*points: tuple[str, float, float], spread: float = 1.0, copies: int = 1) -> Recommendation:
    """Plans by (name, hours, dollars), each on a GPU of its own; p90 is ``spread`` times the median.

    ``copies`` of a plan differ in their ids.
    """
    estimates = {}
    for name, hours, _ in points:
        s = hours * 3.6
        estimates[name, ONE_GPU] = make_estimate(name, Interval(p10=s / spread, p50=s, p90=s * spread))
    return recommend(
        make_trace(),
        estimates,
        {name: make_gpu(name, compute_capability="8.0") for name, _, _ in points},
        [
            replace(make_plan(name, usd / hours), id=name + "'" * copy)
            for name, hours, usd in points
            for copy in range(copies)
        ],
        make_job(iterations=1000),
    )


def option(recommendation: Recommendation, name: str) -> Option:
    return next(o for o in recommendation.options if o.plan.id == name)


def words(recommendation: Recommendation, name: str) -> str:
    return said(option(recommendation, name).reasons)


def test_a_dominated_option_within_five_per_cent_is_a_tie():
    recommendation = answer(("A", 10.0, 50.0), ("B", 10.4, 52.0), ("C", 10.6, 50.0), ("D", 10.0, 53.0))
    assert recommendation.frontier == ("A",)
    assert [option(recommendation, name).tie_with for name in "ABCD"] == [None, "A", None, None]
    assert "tie with A: within 5 % in time and cost" in words(recommendation, "B")
    assert all(o.feasible for o in recommendation.options)


def test_of_two_frontier_options_it_ties_with_the_nearer():
    recommendation = answer(("A", 10.0, 50.0), ("B", 10.3, 48.6), ("C", 10.35, 49.0))
    assert set(recommendation.frontier) == {"A", "B"}
    assert option(recommendation, "C").tie_with == "B"


def test_equal_options_tie_and_both_stay():
    recommendation = answer(("A", 10.0, 50.0), ("B", 10.0, 50.0))
    assert set(recommendation.frontier) == {"A", "B"}
    assert {option(recommendation, name).tie_with for name in "AB"} == {"A", "B"}


def test_free_options_tie_with_free_ones_alone():
    recommendation = answer(("A", 10.0, 0.0), ("B", 10.1, 0.0), ("C", 10.1, 0.01))
    assert option(recommendation, "B").tie_with == "A"
    assert option(recommendation, "C").tie_with is None


def test_overlapping_predictions_leave_it_open_which_is_faster():
    # 12 % slower, each 10 % uncertain: the log ratio has sigma 0.0744 x sqrt(2 (1 - 0.2)) = 0.094.
    recommendation = answer(("A", 10.0, 50.0), ("B", 11.2, 60.0), spread=1.1)
    assert recommendation.frontier == ("A",)
    text = words(recommendation, "B")
    assert "near tie in time: A costs no more and is done sooner with probability" in text
    p = float(text.split("with probability ")[1].split()[0].rstrip(";"))
    assert p == pytest.approx(0.88, abs=0.03)


def test_neighbours_on_the_frontier_may_be_as_fast():
    recommendation = answer(("A", 10.0, 60.0), ("B", 10.5, 40.0), spread=1.1)
    assert recommendation.frontier == ("A", "B")
    text = words(recommendation, "A")
    assert "near tie in time: B costs less and is done sooner with probability" in text
    assert "near tie" not in words(recommendation, "B")


@pytest.mark.parametrize("spread", [1.0, 1.1])
def test_what_is_twice_as_slow_is_surely_slower(spread):
    recommendation = answer(("A", 10.0, 50.0), ("B", 20.0, 60.0), spread=spread)
    assert "near tie" not in words(recommendation, "B")


def test_without_uncertainty_nothing_is_near():
    ranked = answer(("A", 10.0, 50.0), ("B", 10.1, 60.0), ("C", 10.2, 49.0))
    assert "near tie" not in words(ranked, "A") + words(ranked, "B") + words(ranked, "C")


def test_one_gpu_in_two_places_is_surely_ordered():
    """Whatever is wrong in its prediction is wrong in both places."""
    wide = make_estimate("A", Interval(p10=18.0, p50=36.0, p90=72.0))
    plans = [make_plan("A", 5.0, id="near"), make_plan("A", 6.0, id="slow", startup_s=600.0)]
    recommendation = recommend(
        make_trace(), {("A", ONE_GPU): wide}, {"A": make_gpu("A")}, plans, make_job(iterations=1000)
    )
    assert "near tie" not in words(recommendation, "slow")


FIGURES = st.tuples(st.floats(10.0, 12.0), st.sampled_from([40.0, 45.0, 50.0]))


@given(st.lists(FIGURES, min_size=1, max_size=4), st.sampled_from([1.0, 1.1, 1.5]))
def test_machines_that_are_alike_are_as_sure_rivals_as_one_of_them(figures, spread):
    points = [(name, *pair) for name, pair in zip("ABCD", figures, strict=False)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(frontier, "_distinct", lambda judged, kept: kept)  # noqa: ARG005
        each_compared = answer(*points, spread=spread, copies=3)
    assert answer(*points, spread=spread, copies=3) == each_compared


def test_only_what_is_as_fast_and_as_cheap_dominates():
    """Of a frontier of three the first is dearer than the point, and the last is slower."""
    slow = frontier._rivals(3, [(1.0, 9.0), (2.0, 5.0), (3.0, 1.0), (2.5, 6.0)], [0, 1, 2])
    assert slow == [1]
