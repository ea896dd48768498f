"""Pareto frontier of points where less is better on both axes, and its knee."""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float]

KNEE_FEWEST = 4


def frontier(points: Sequence[Point]) -> list[int]:
    """Indices of the points no other point dominates, in order of the first axis; equal points all stay.

    A point dominates another if it is no worse on both axes and better on one. Points with an infinite
    axis are never on the frontier. O(n log n); the brute force is in the tests.

    >>> frontier([(2.8, 8.3), (6.9, 6.3), (8.3, 10.0)])
    [0, 1]
    """
    order = sorted(
        (i for i, point in enumerate(points) if all(map(math.isfinite, point))),
        key=lambda i: (*points[i], i),
    )
    kept: list[int] = []
    for i in order:
        if not kept or points[i][1] < points[kept[-1]][1] or points[i] == points[kept[-1]]:
            kept.append(i)
    return kept


def knee(points: Sequence[Point]) -> int | None:
    """Index of the point farthest below the chord between the ends, on log-normalised axes.

    None below four points or where an axis has a zero: there is no bend to speak of.
    """
    if len(points) < KNEE_FEWEST or min(min(point) for point in points) <= 0:
        return None
    axes = [[math.log(point[axis]) for point in points] for axis in (0, 1)]
    if any(max(axis) == min(axis) for axis in axes):
        return None
    x, y = ([(v - min(axis)) / (max(axis) - min(axis)) for v in axis] for axis in axes)
    # On the unit square the chord runs from (0, 1) to (1, 0), so x + y measures the distance to it.
    best = min(range(len(points)), key=lambda i: (x[i] + y[i], i))
    return best if x[best] + y[best] < 1 else None
