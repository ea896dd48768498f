"""The Pareto frontier and its ties, rows folded into one like them, near misses, machines with more vCPUs."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.findings import Finding, about_options
from advisor.core.input_time import input_s
from advisor.core.iterables import grouped
from advisor.core.values import Bound, Job, Layout, Market, Option
from recommender.outcome.draws import Array, chance_below
from recommender.outcome.evaluate import Judged
from recommender.outcome.feeding import vcpus_per_gpu
from recommender.ranking.value import Worth, preference

Point = tuple[float, float]

EPSILON = 0.05


def frontier(points: Sequence[Point]) -> list[int]:
    """Indices of the points no other point dominates, in order of the first axis; equal points all stay.

    A point dominates another if it is no worse on both axes and better on one. Points with an infinite
    axis are never on the frontier. O(n log n); the brute force is in the tests.

    >>> frontier([(2.8, 8.3), (6.9, 6.3), (8.3, 10.0)])
    [0, 1]
    """
    kept: list[int] = []
    for i in _in_order(points):
        if not kept or points[i][1] < points[kept[-1]][1] or points[i] == points[kept[-1]]:
            kept.append(i)
    return kept


def frontier_of_three(points: Sequence[tuple[float, float, float]]) -> list[int]:
    """As ``frontier``, with a third axis; O(n times the size of the frontier).

    >>> frontier_of_three([(1, 1, 1), (2, 2, 0), (2, 2, 1)])
    [0, 1]
    """
    order = _in_order(points)
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


def _in_order(points: Sequence[tuple[float, ...]]) -> list[int]:
    finite = (i for i, point in enumerate(points) if all(map(math.isfinite, point)))
    return sorted(finite, key=lambda i: (*points[i], i))


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


# Between these odds of being the faster one, predictions do not tell two options apart.
UNSURE = (0.1, 0.9)


def with_ties(judged: Sequence[Judged], kept: Sequence[int]) -> list[Option]:
    """The options of feasible plans, with ties and near ties with the frontier of time and cost."""
    options = [item.option for item in judged]
    points = [point_of(option) for option in options]
    tied = ties(points, kept)
    unsure = _unsure(judged, points, kept, tied)
    marked = []
    for i, option in enumerate(options):
        other = options[tied[i]].plan.id if i in tied else None
        near: list[Finding] = [about_options.Tie(plan_id=other, within_share=EPSILON)] if other else []
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
        rivals = [] if i in tied else [judged[kept[place]] for place in _rivals(i, points, kept)]
        odds: list[float] = []
        for rival in rivals:
            odds.append(chance_below(rival.time_s, item.time_s))
            if odds[-1] >= UNSURE[1]:  # mostly of the first, which is the fastest
                break
        p = max(odds, default=0.0)
        if UNSURE[0] < p < UNSURE[1]:
            plan_id = rivals[odds.index(p)].option.plan.id
            near_ties[i] = about_options.NearTie(plan_id=plan_id, p_slower=p, is_on_frontier=i in kept)
    return near_ties


def _distinct(judged: Sequence[Judged], kept: Sequence[int]) -> list[int]:
    """The first of equal draws: node types of a cluster may be alike by the hundred, all on the frontier."""
    return [places[0] for places in grouped(kept, lambda j: judged[j].time_s.tobytes()).values()]


def _rivals(i: int, points: Sequence[Point], kept: Sequence[int]) -> list[int]:
    """What dominates a point, as places in ``kept``; of the frontier's own, the next slower, cheaper one."""
    if i in kept:
        following = kept.index(i) + 1
        return [following] if following < len(kept) else []
    time_s, usd = points[i]
    return [place for place, j in enumerate(kept) if points[j][0] <= time_s and points[j][1] <= usd]


# What only asks for more money or time, with what comes nearest to it.
LIMITS = {
    about_options.RemovedByBudget.code: lambda o: o.cost_usd.p50,
    about_options.RemovedByDeadline.code: lambda o: o.time_s.p50,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """An option that misses, and by how much; 0 where it does not."""

    option: Option
    over_budget_usd: float
    late_s: float


def nearest(options: Sequence[Option], job: Job) -> tuple[Nearest, ...]:
    """The best of those that miss one limit alone, for each limit; of all, where each misses both.

    What fails for another reason (memory, sharding, software) never comes near.
    """
    fitting = [o for o in options if o.removed_by and not set(o.removed_by) - LIMITS.keys()]
    missing = {limit: [o for o in fitting if o.removed_by == (limit,)] for limit in LIMITS}
    if not any(missing.values()):
        missing = {limit: fitting for limit in LIMITS if fitting}
    best = [min(missed, key=LIMITS[limit]) for limit, missed in missing.items() if missed]
    budget, deadline = job.budget_usd, job.deadline_s
    return tuple(
        Nearest(
            option=option,
            over_budget_usd=0.0 if budget is None else max(option.cost_usd.p50 - budget, 0.0),
            late_s=0.0 if deadline is None else max(option.time_s.p50 - deadline, 0.0),
        )
        for option in {one.plan.id: one for one in best}.values()
    )


# Folding is of the view. It is worked out after the choice, and decides nothing.

# Less is hidden by the interval of any prediction, and no one moves a job for it.
LEAST_SHARE = 0.05
LEAST_SAVED_S = 60.0
# A row never speaks for an option whose time or cost lies farther from its own.
MOST_SHARE = 0.2


def with_folded(options: Sequence[Option], best_id: str, worth: Worth) -> list[Option]:
    """The options in the same order, each folded into the most preferred one like it that gains little less.

    A row speaks for options of its own kind alone: on demand or spot, or one owner's machines; with the same
    work on the script; and at most 20 % from it in time and in cost. That of ``best_id`` keeps its row.
    """

    def kind(option: Option) -> object:
        plan = option.plan
        return plan.provider if plan.offer is None else plan.offer.market, option.work

    kinds = grouped(sorted(options, key=lambda o: (o.plan.id != best_id, preference(o, worth))), kind)
    folded: dict[str, Option] = {}
    for alike in kinds.values():
        for first, *others in _groups(alike):
            folded |= {o.plan.id: replace(o, folded_into=first.plan.id) for o in others}
            folded[first.plan.id] = _speaking_for(first, others) if others else first
    return [folded[option.plan.id] for option in options]


def _groups(options: Sequence[Option]) -> Iterator[list[Option]]:
    """Those that get a row, each with what it speaks for; the options in order of preference."""
    times_s = np.array([option.time_s.p50 for option in options])
    usd = np.array([option.cost_usd.p50 for option in options])
    left = np.arange(len(options))
    while left.size:
        first, left = left[0], left[1:]
        like = _is_like(times_s[first] - times_s[left], times_s[first], usd[first] - usd[left], usd[first])
        yield [options[first], *(options[i] for i in left[like])]
        left = left[~like]


def _is_like(saved_s: Array, time_s: float, saved_usd: Array, usd: float) -> NDArray[np.bool_]:
    """Whether options save too little against one of this time and cost, and lie near it in both.

    Of a job of minutes a dearer one may lie anywhere: what saves less than a minute of it is not wanted.
    """
    least_s, least_usd = max(LEAST_SHARE * time_s, LEAST_SAVED_S), LEAST_SHARE * usd
    gains_little = (saved_s < least_s) & ((saved_usd < least_usd) | (saved_usd <= 0))
    most_s, most_usd = max(MOST_SHARE * time_s, LEAST_SAVED_S), MOST_SHARE * usd
    is_of_minutes = LEAST_SHARE * time_s < LEAST_SAVED_S
    costs_like = (np.abs(saved_usd) <= most_usd) | (is_of_minutes & (saved_usd <= 0))
    return np.asarray(gains_little & (np.abs(saved_s) <= most_s) & costs_like)


def _speaking_for(option: Option, others: Sequence[Option]) -> Option:
    rows = (option, *others)
    times_s, usd = [o.time_s.p50 for o in rows], [o.cost_usd.p50 for o in rows]
    gpus = [other.plan.gpus for other in others if other.plan.gpus != option.plan.gpus]
    alike = about_options.Alike(
        num_options=len(others),
        num_of_other_gpus=len(gpus),
        other_gpus=list(dict.fromkeys(gpus)),
        faster_s=times_s[0] - min(times_s),
        slower_s=max(times_s) - times_s[0],
        cheaper_usd=usd[0] - min(usd),
        dearer_usd=max(usd) - usd[0],
    )
    return replace(option, reasons=(*option.reasons, alike))


# Less of the time is not worth another machine.
_LEAST_SAVING = 0.05


def with_more_vcpus(judged: Sequence[Judged]) -> list[Judged]:
    """Options that wait for input name the cheapest machine of their GPUs that feeds them faster."""
    if all(item.option.estimate.binds is not Bound.INPUT for item in judged):
        return list(judged)
    options = (item.option for item in judged)
    rented = grouped((o for o in options if o.plan.offer is not None and o.feasible), _same_gpus)
    found = []
    for item in judged:
        option = item.option
        alike = rented.get(_same_gpus(option), ()) if option.estimate.binds is Bound.INPUT else ()
        if (note := _note(option, alike)) is not None:
            item = replace(item, option=replace(option, reasons=(*option.reasons, note)))
        found.append(item)
    return found


def _same_gpus(option: Option) -> tuple[str, Layout, Market]:
    plan = option.plan
    market = Market.ON_DEMAND if plan.offer is None else plan.offer.market
    return plan.gpu, replace(plan.layout, fabric=None), market


def _note(option: Option, alike: Iterable[Option]) -> Finding | None:
    made_s, whole_s = _made_s(option, option), option.estimate.input_s
    if made_s is None or whole_s is None or made_s < whole_s.p50:
        return None  # its disks or its network keep it waiting
    # By vCPUs, of which workers may leave some idle: both the samples and the whole.
    fast = (o for o in alike if o.time_s.p50 <= (1 - _LEAST_SAVING) * option.time_s.p50)
    faster = (o for o in fast if (there_s := _made_s(option, o)) is not None and there_s < made_s)
    better = min(faster, key=lambda o: (o.cost_usd.p50, o.plan.id), default=None)
    if better is None or better.plan.offer is None:
        return None
    return about_options.MoreVcpus(
        instance_type=better.plan.offer.instance_type,
        vcpus_per_gpu=vcpus_per_gpu(better.plan),
        time_s=better.time_s.p50,
        cost_usd=better.cost_usd.p50,
        instead_of_time_s=option.time_s.p50,
        instead_of_cost_usd=option.cost_usd.p50,
    )


def _made_s(option: Option, there: Option) -> float | None:
    """Seconds in which the samples of one of its iterations are made by another's vCPUs."""
    work = option.estimate.input
    return None if work is None else input_s(work, vcpus_per_gpu(there.plan)).p50
