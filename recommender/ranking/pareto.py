"""Pareto frontier of points where less is better on every axis, and ties with it."""

import math
from collections.abc import Sequence

import numpy as np

Point = tuple[float, float]

EPSILON = 0.05


def frontier(points: Sequence[Point]) -> list[int]:
    """Indices of the points no other point dominates, in order of the first axis; equal points all stay.

    A point dominates another if it is no worse on both axes and better on one. Points with an infinite
    axis are never on the frontier. O(n log n); the brute force is in the tests.

    >>> frontier([(2.8, 8.3), (6.9, 6.3), (8.3, 10.0)])
    [0, 1]
    """
    order = sorted(
        (i for i, point in enumerate(points) if all(map(math.isfinite, point))), key=lambda i: (*points[i], i)
    )
    kept: list[int] = []
    for i in order:
        if not kept or points[i][1] < points[kept[-1]][1] or points[i] == points[kept[-1]]:
            kept.append(i)
    return kept


def frontier_of_three(points: Sequence[tuple[float, float, float]]) -> list[int]:
    """As ``frontier``, with a third axis; O(n times the size of the frontier).

    >>> frontier_of_three([(1, 1, 1), (2, 2, 0), (2, 2, 1)])
    [0, 1]
    """
    order = sorted(
        (i for i, point in enumerate(points) if all(map(math.isfinite, point))), key=lambda i: (*points[i], i)
    )
    kept: list[int] = []
    best = np.empty((len(order), 3))
    for i in order:
        # What dominates a point comes before it in this order, and so does something kept that dominates it.
        before = best[: len(kept)]
        no_worse = (before <= points[i]).all(axis=1)
        if not (no_worse & (before != points[i]).any(axis=1)).any():
            best[len(kept)] = points[i]
            kept.append(i)
    return kept


def ties(points: Sequence[Point], kept: Sequence[int], epsilon: float = EPSILON) -> dict[int, int]:
    """For each point that another of the frontier ``kept`` nearly equals: the index of the nearest such.

    Two points are tied if on both axes the larger value is within a factor of ``1 + epsilon`` of the smaller.

    >>> ties([(10.0, 50.0), (10.2, 49.5), (10.3, 51.0), (20.0, 40.0)], [0, 1, 3])
    {0: 1, 1: 0, 2: 1}
    """
    nearest: dict[int, tuple[float, int]] = {}
    axes = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    for j in kept:
        high, low = np.maximum(axes, axes[j]), np.minimum(axes, axes[j])
        near = (np.isfinite(high) & (high <= low * (1 + epsilon))).all(axis=1)
        for i in np.flatnonzero(near).tolist():
            # Equal zeros are no distance apart.
            apart = sum(math.log(h / w) if h > w else 0.0 for h, w in zip(high[i], low[i], strict=True))
            if i != j and (i not in nearest or (apart, j) < nearest[i]):
                nearest[i] = (apart, j)
    return {i: nearest[i][1] for i in sorted(nearest)}
