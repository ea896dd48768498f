"""Frontier and knee on points small enough to see."""

from __future__ import annotations

import math

import pytest

from recommender.ranking.pareto import Point, frontier, knee


@pytest.mark.parametrize(
    ("points", "kept"),
    [
        ([], []),
        ([(1, 1)], [0]),
        ([(2, 2), (1, 1)], [1]),
        ([(1, 2), (1, 1)], [1]),  # equally fast: the cheaper
        ([(2, 1), (1, 1)], [1]),  # equally cheap: the faster
        ([(1, 1), (1, 1)], [0, 1]),
        ([(3, 1), (2, 2), (1, 3)], [2, 1, 0]),
        ([(1, math.inf), (math.inf, 1)], []),
        ([(math.nan, 1), (1, 1)], [1]),
        ([(0, 0), (1, 0), (0, 1)], [0]),
    ],
)
def test_the_frontier_by_time(points: list[Point], kept: list[int]) -> None:
    assert frontier(points) == kept


def test_equal_points_stay_in_the_order_given() -> None:
    assert frontier([(2, 1), (1, 2), (2, 1), (1, 2)]) == [1, 3, 0, 2]


ELBOW = [(1.0, 1000.0), (10.0, 10.0), (100.0, 5.0), (1000.0, 1.0)]


def test_the_knee_is_the_point_farthest_below_the_chord() -> None:
    # In thirds of the log axes: (1/3, 1/3) has the sum 0.67, (2/3, 0.23) has 0.90.
    assert knee(ELBOW) == 1


def test_the_knee_does_not_depend_on_the_units() -> None:
    for time_unit, cost_unit in ((3600.0, 1.0), (1.0, 0.01), (1e-6, 1e6)):
        assert knee([(time * time_unit, cost * cost_unit) for time, cost in ELBOW]) == 1


def test_logarithms_decide_where_the_knee_is() -> None:
    # Straight from (1, 10000) to (1000, 10) in logarithms but for the dent at the third; in dollars the
    # second would be farther from the chord.
    assert knee([(1.0, 1e4), (10.0, 1e3), (100.0, 20.0), (1000.0, 10.0)]) == 2


def test_four_points_are_enough_and_three_are_not() -> None:
    assert knee(ELBOW[:3]) is None
    assert knee(ELBOW) is not None


@pytest.mark.parametrize(
    "points",
    [
        [(1.0, 8.0), (2.0, 6.0), (4.0, 3.9), (8.0, 0.0)],
        [(0.0, 8.0), (2.0, 4.0), (4.0, 2.0), (8.0, 1.0)],
    ],
)
def test_a_zero_has_no_logarithm_and_so_no_knee(points: list[Point]) -> None:
    assert knee(points) is None


def test_a_bulge_outwards_has_no_knee() -> None:
    assert knee([(1.0, 100.0), (10.0, 90.0), (50.0, 50.0), (100.0, 1.0)]) is None


@pytest.mark.parametrize("points", [[(1.0, 1.0)] * 4, [(1.0, c) for c in (4.0, 3.0, 2.0, 1.0)]])
def test_a_flat_axis_has_no_knee(points: list[Point]) -> None:
    assert knee(points) is None


def test_of_two_equal_bends_the_faster_is_the_knee() -> None:
    points = [(1.0, 1000.0), (10.0, 10.0), (10.0, 10.0), (1000.0, 1.0)]
    assert knee(points) == 1
