"""Laws of the frontier: brute force agrees, and no offer hurts."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from recommender.pareto import Point, frontier, knee

# Few distinct values, so that ties and duplicates are common.
AXIS = st.one_of(st.integers(0, 6).map(float), st.floats(0, 1e6, allow_nan=False), st.just(math.inf))
POINTS = st.lists(st.tuples(AXIS, AXIS), max_size=25)


def dominates(a: Point, b: Point) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and a != b


def brute_force(points: list[Point]) -> set[int]:
    return {
        i
        for i, point in enumerate(points)
        if all(map(math.isfinite, point)) and not any(dominates(other, point) for other in points)
    }


@given(POINTS)
def test_equals_brute_force(points: list[Point]) -> None:
    assert set(frontier(points)) == brute_force(points)


@given(POINTS)
def test_is_sorted_by_time_and_falls_in_cost(points: list[Point]) -> None:
    chosen = [points[i] for i in frontier(points)]
    assert chosen == sorted(chosen)
    assert [cost for _, cost in chosen] == sorted((c for _, c in chosen), reverse=True)


@given(POINTS, st.tuples(AXIS, AXIS))
def test_a_new_point_only_removes_what_it_dominates(points: list[Point], new: Point) -> None:
    before = {points[i] for i in frontier(points)}
    after = {[*points, new][i] for i in frontier([*points, new])}
    assert all(dominates(new, point) for point in before - after)


@given(POINTS)
def test_is_never_empty_where_something_is_finite(points: list[Point]) -> None:
    finite = any(all(map(math.isfinite, point)) for point in points)
    assert bool(frontier(points)) == finite


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), max_size=12))
def test_the_knee_is_a_point_below_the_chord(points: list[Point]) -> None:
    chosen = [points[i] for i in frontier(points)]
    index = knee(chosen)
    assert index is None or 0 < index < len(chosen) - 1 or len(set(chosen)) < len(chosen)


def test_no_knee_below_four_points() -> None:
    assert knee([(1.0, 9.0), (2.0, 2.0), (9.0, 1.0)]) is None


def test_the_knee_of_an_elbow() -> None:
    assert knee([(1.0, 100.0), (2.0, 10.0), (10.0, 5.0), (100.0, 1.0)]) == 1


def test_a_straight_line_in_logarithms_has_no_knee() -> None:
    assert knee([(1.0, 8.0), (2.0, 4.0), (4.0, 2.0), (8.0, 1.0)]) is None
