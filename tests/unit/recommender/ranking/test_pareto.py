"""The frontier of points small enough to see."""

import math

import pytest

from recommender.ranking.frontier import frontier


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
def test_the_frontier_by_time(points, kept):
    assert frontier(points) == kept


def test_equal_points_stay_in_the_order_given():
    assert frontier([(2, 1), (1, 2), (2, 1), (1, 2)]) == [1, 3, 0, 2]
