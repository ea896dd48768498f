"""One machine over numbers of its GPUs: time, cost, and the number up to which more of them pay."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from advisor.core.findings import Finding
from advisor.core.findings.about_answers import CurveOfNone, CurveStops
from advisor.core.findings.about_options import Unknown
from advisor.core.iterables import grouped
from advisor.core.units import HOUR_S
from advisor.core.values import Job, Option, Plan
from recommender.plans.named import places_of, plans_with_words, words_of_name
from recommender.ranking import value
from recommender.ranking.what_tips import machine


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One number of GPUs."""

    option: Option
    """The best of this number."""
    total_usd: float
    """Expected cost and the worth of the expected time; infinite where it may never end."""
    usd_per_h_saved: float | None
    """What each hour costs that it saves beside the next smaller number that does the job; below 0 where it
    saves money as well, infinite where it saves no time. None for the first, and for one that does not do
    the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingCurve:
    """A machine's GPU over its numbers."""

    worth: value.Worth
    points: tuple[CurvePoint, ...]
    """By number of GPUs."""
    best: str | None
    """Plan id of the number up to which more pay; None where none does the job, or where it is unknown what
    an hour of it costs."""
    verdict: Finding
    """The same with the figures that decide."""


def curve_of(name: str, options: Sequence[Option], job: Job) -> ScalingCurve:
    """The curve of the machine that a name means: its GPU, provider and market, in any region it leaves open.

    The name is an id of a plan, or words of one, its number of GPUs included or not. Raises InputError: no
    plan has it.
    """
    worth, by_id = value.worth_for(job), {option.plan.id: option for option in options}
    named = plans_with_words(name, [option.plan for option in options])
    anchor = _kind(_best([by_id[plan.id] for plan in named], worth).plan)
    alike = [option for option in options if _kind(option.plan) == anchor]
    places = words_of_name(name) & {place for option in alike for place in places_of(option.plan)}
    return scaling_curve([o for o in alike if not places or places & places_of(o.plan)], worth)


def scaling_curve(options: Iterable[Option], worth: value.Worth) -> ScalingCurve:
    """The curve of options with one GPU: the best of each number, and where more stop paying."""
    by_number = grouped(options, lambda option: option.plan.num_gpus)
    points = tuple(_points([_best(by_number[number], worth) for number in sorted(by_number)], worth))
    feasible = [point for point in points if point.option.feasible]
    is_priced = all(point.option.plan.usd_per_h is not None for point in feasible)
    best = value.least_total([point.option for point in feasible], worth) if feasible and is_priced else None
    return ScalingCurve(
        worth=worth,
        points=points,
        best=None if best is None else best.plan.id,
        verdict=_verdict(feasible, best, worth) if is_priced else Unknown(what="curve-cost"),
    )


def _kind(plan: Plan) -> tuple[str, ...]:
    """What is held while GPUs are added."""
    return plan.gpu, plan.tier, plan.provider, "" if plan.offer is None else plan.offer.market


def _best(options: Sequence[Option], worth: value.Worth) -> Option:
    return min(options, key=lambda option: (not option.feasible, value.preference(option, worth)))


def _points(options: Sequence[Option], worth: value.Worth) -> Iterator[CurvePoint]:
    before: Option | None = None
    for option in options:
        saved = None
        if before is not None and option.feasible:
            saved_h = (value.whole_s(before) - value.whole_s(option)) / HOUR_S
            more_usd = value.whole_usd(option, worth) - value.whole_usd(before, worth)
            saved = more_usd / saved_h if saved_h > 0 else math.inf
        yield CurvePoint(option=option, total_usd=value.total_usd(option, worth), usd_per_h_saved=saved)
        before = option if option.feasible else before


def _verdict(feasible: Sequence[CurvePoint], best: Option | None, worth: value.Worth) -> Finding:
    if best is None:
        return CurveOfNone()
    place = next(i for i, point in enumerate(feasible) if point.option is best)
    is_last = place + 1 == len(feasible)
    # Of the largest number the step to it is reported, if there is a smaller one.
    more = feasible[place if is_last else place + 1]
    fewer = feasible[max(place - is_last, 0)].option
    saved = more.usd_per_h_saved
    change_usd = value.change_usd(more.option, worth) - value.change_usd(fewer, worth)
    return CurveStops(
        machine=machine(best),
        next_num_gpus=None if is_last else more.option.plan.num_gpus,
        usd_per_h_saved=None if saved is None or math.isinf(saved) else saved,
        change_usd=change_usd,
        value_usd_per_h=worth.hour_usd,
    )
