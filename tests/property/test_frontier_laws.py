"""Laws of the frontier: brute force agrees, and no offer hurts."""

import math

from hypothesis import given
from hypothesis import strategies as st

from recommender.ranking.frontier import EPSILON, Point, frontier, frontier_of_three, ties

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
def test_equals_brute_force(points):
    assert set(frontier(points)) == brute_force(points)


@given(POINTS)
def test_is_sorted_by_time_and_falls_in_cost(points):
    chosen = [points[i] for i in frontier(points)]
    assert chosen == sorted(chosen)
    assert [cost for _, cost in chosen] == sorted((c for _, c in chosen), reverse=True)


@given(POINTS, st.tuples(AXIS, AXIS))
def test_a_new_point_only_removes_what_it_dominates(points, new):
    before = {points[i] for i in frontier(points)}
    after = {[*points, new][i] for i in frontier([*points, new])}
    assert all(dominates(new, point) for point in before - after)


Point3 = tuple[float, float, float]
POINTS3 = st.lists(st.tuples(AXIS, AXIS, st.integers(0, 3).map(float)), max_size=25)


@given(POINTS3)
def test_with_risk_it_equals_brute_force_in_three_axes(points):
    def beats(a: Point3, b: Point3) -> bool:
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    expected = {
        i
        for i, point in enumerate(points)
        if all(map(math.isfinite, point)) and not any(beats(other, point) for other in points)
    }
    assert set(frontier_of_three(points)) == expected


@given(POINTS)
def test_with_equal_risk_it_is_the_frontier_of_time_and_cost(points):
    assert frontier_of_three([(*point, 1.0) for point in points]) == frontier(points)


@given(POINTS)
def test_ties_equal_brute_force(points):
    def nearly(a: Point, b: Point) -> bool:
        return all(max(x, y) <= min(x, y) * (1 + EPSILON) for x, y in zip(a, b, strict=True))

    kept = frontier(points)
    tied = ties(points, kept)
    finite = [i for i, point in enumerate(points) if all(map(math.isfinite, point))]
    assert set(tied) == {i for i in finite if any(i != j and nearly(points[i], points[j]) for j in kept)}
    assert all(j in kept and nearly(points[i], points[j]) for i, j in tied.items())


@given(POINTS, st.permutations(range(25)))
def test_the_order_of_offers_does_not_matter(points, order):
    shuffled = [points[i] for i in order if i < len(points)]
    one, other = frontier(points), frontier(shuffled)
    assert [points[i] for i in one] == [shuffled[i] for i in other]
    assert sorted(points[i] for i in ties(points, one)) == sorted(shuffled[i] for i in ties(shuffled, other))
