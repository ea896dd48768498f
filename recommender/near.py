"""Which options are ties of the frontier, and which are not surely beaten by it, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.types import Option
from recommender.draws import chance_below
from recommender.evaluate import Judged
from recommender.pareto import EPSILON, Point, ties

# Between these odds of being the faster one, predictions do not tell two options apart.
UNSURE = (0.1, 0.9)


def with_ties(judged: Sequence[Judged], kept: Sequence[int]) -> list[Option]:
    """The options of feasible plans, ties and near ties told.

    Args:
        judged: feasible ones.
        kept: indices of the frontier's, in order of time.
    """
    options = [item.option for item in judged]
    points = [point_of(option) for option in options]
    tied = ties(points, kept)
    unsure = _unsure(judged, points, kept, tied)
    told = []
    for i, option in enumerate(options):
        other = options[tied[i]].plan.id if i in tied else None
        words = [f"tie with {other}: within {EPSILON * 100:g} % in time and cost"] if other else []
        words += [unsure[i]] if i in unsure else []
        told.append(replace(option, tie_with=other, reasons=(*words, *option.reasons)) if words else option)
    return told


def point_of(option: Option) -> Point:
    """Median time and median cost."""
    return option.time_s.p50, option.cost_usd.p50


def _unsure(
    judged: Sequence[Judged], points: Sequence[Point], kept: Sequence[int], tied: Mapping[int, int]
) -> dict[int, str]:
    """By index: the words for options that are not surely slower or faster than the frontier's rival."""
    found: dict[int, str] = {}
    rank = {j: place for place, j in enumerate(kept)}
    for i, item in enumerate(judged):
        if i in tied:
            continue
        if i in rank:
            rivals = kept[rank[i] + 1 : rank[i] + 2]  # the next slower one, which is cheaper
        else:
            rivals = [j for j in kept if points[j][0] <= points[i][0] and points[j][1] <= points[i][1]]
        if not rivals:
            continue
        chances = chance_below([judged[j].time_s for j in rivals], item.time_s)
        surest = int(np.argmax(chances))
        if UNSURE[0] < chances[surest] < UNSURE[1]:
            rival, than = judged[rivals[surest]].option.plan.id, "slower"
            p = chances[surest]
            if i in rank:
                p, than = 1 - p, "faster"
            found[i] = f"near tie in time with {rival}, which costs no more: {than} with p {p:.2f} only"
    return found
