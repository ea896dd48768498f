"""Which options are ties of the frontier, and which are not surely beaten by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Option
from recommender.outcome.draws import Array, chance_below
from recommender.outcome.evaluate import Judged
from recommender.ranking.pareto import EPSILON, Point, ties

# Between these odds of being the faster one, predictions do not tell two options apart.
UNSURE = (0.1, 0.9)


def with_ties(judged: Sequence[Judged], kept: Sequence[int]) -> list[Option]:
    """The options of feasible plans, ties and near ties among their reasons.

    Args:
        judged: feasible ones.
        kept: indices of the frontier's of time and cost, in order of time.
    """
    options = [item.option for item in judged]
    points = [point_of(option) for option in options]
    tied = ties(points, kept)
    unsure = _unsure(judged, points, kept, tied)
    marked = []
    for i, option in enumerate(options):
        other = options[tied[i]].plan.id if i in tied else None
        near = [finding(Code.TIE, plan_id=other, within_share=EPSILON)] if other else []
        near += [unsure[i]] if i in unsure else []
        marked.append(replace(option, tie_with=other, reasons=(*near, *option.reasons)) if near else option)
    return marked


def point_of(option: Option) -> Point:
    """Median time, and median cost as it counts."""
    return option.time_s.p50, option.counted_usd


def _unsure(
    judged: Sequence[Judged], points: Sequence[Point], kept: Sequence[int], tied: Mapping[int, int]
) -> dict[int, Finding]:
    """By index: options that are not surely slower or faster than the frontier's rival."""
    near_ties: dict[int, Finding] = {}
    kept = _distinct(judged, kept)
    for i, item in enumerate(judged):
        rivals = [] if i in tied else _rivals(i, points, kept)
        surest = _surest(item.time_s, [judged[kept[rival]].time_s for rival in rivals])
        if surest is not None:
            place, p = surest
            rival = judged[kept[rivals[place]]].option.plan.id
            near_ties[i] = finding(Code.NEAR_TIE, plan_id=rival, p_slower=p, is_on_frontier=i in kept)
    return near_ties


def _surest(time_s: Array, rivals_s: Sequence[Array]) -> tuple[int, float] | None:
    """The rival that is most likely the faster one, and its odds; None where predictions tell them apart."""
    odds: list[float] = []
    for rival_s in rivals_s:
        odds.append(chance_below(rival_s, time_s))
        if odds[-1] >= UNSURE[1]:  # mostly of the first, which is the fastest
            return None
    p = max(odds, default=0.0)
    return (odds.index(p), p) if p > UNSURE[0] else None


def _distinct(judged: Sequence[Judged], kept: Sequence[int]) -> list[int]:
    """The first of those with equal draws: they are tied, and each is as sure a rival as the others.

    Node types of a cluster may be alike by the hundred, and all on the frontier.
    """
    first: dict[bytes, int] = {}
    for j in kept:
        first.setdefault(judged[j].time_s.tobytes(), j)
    return list(first.values())


def _rivals(i: int, points: Sequence[Point], kept: Sequence[int]) -> list[int]:
    """What dominates a point, as places in ``kept``; of the frontier's own, the next slower, cheaper one."""
    if i in kept:
        following = kept.index(i) + 1
        return [following] if following < len(kept) else []
    time_s, usd = points[i]
    return [place for place, j in enumerate(kept) if points[j][0] <= time_s and points[j][1] <= usd]
