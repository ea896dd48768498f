"""Which options are ties of the frontier, and which are not surely beaten by it, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.core.values import Option
from recommender.outcome.draws import chance_below
from recommender.outcome.evaluate import Judged
from recommender.ranking.pareto import EPSILON, Point, ties

# Between these odds of being the faster one, predictions do not tell two options apart.
UNSURE = (0.1, 0.9)


def with_ties(judged: Sequence[Judged], kept: Sequence[int]) -> list[Option]:
    """The options of feasible plans, ties and near ties told.

    Args:
        judged: feasible ones.
        kept: indices of the frontier's of time and cost, in order of time.
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
    for i, item in enumerate(judged):
        rivals = [] if i in tied else _rivals(i, points, kept)
        if not rivals:
            continue
        chances = chance_below([judged[j].time_s for j in rivals], item.time_s)
        surest = int(np.argmax(chances))
        p = float(chances[surest])
        if UNSURE[0] < p < UNSURE[1]:
            rival = judged[rivals[surest]].option.plan.id
            odds = f"faster with p {1 - p:.2f} only" if i in kept else f"slower with p {p:.2f} only"
            found[i] = f"near tie in time with {rival}, which costs no more: {odds}"
    return found


def _rivals(i: int, points: Sequence[Point], kept: Sequence[int]) -> Sequence[int]:
    """What dominates a point; of the frontier's own, the next slower one, which is cheaper."""
    if i in kept:
        place = kept.index(i)
        return kept[place + 1 : place + 2]
    return [j for j in kept if points[j][0] <= points[i][0] and points[j][1] <= points[i][1]]
