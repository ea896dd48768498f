"""What if the script were changed: the same plans, timed for the script as the change would make it.

A what-if never touches the options of the script as it is, their frontier or the choice among them. It is an
option of its own, whose id ends in the change's name. What a change does to a trace is
``advisor.predict.what_if``'s matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from advisor.core.findings import Code
from advisor.core.units import HOUR_S
from advisor.core.values import GpuSpec, IterationEstimate, Job, Option, Plan, Recommendation, Trace
from advisor.predict.calibration.receipt_corrections import Correction
from advisor.predict.interval import widened
from advisor.predict.what_if.change import Change
from advisor.predict.what_if.making import changes
from advisor.pricing.spot import Interruptions
from recommender.outcome.draws import Draws, make_draws
from recommender.outcome.estimates import estimating
from recommender.outcome.evaluate import evaluate_all
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, terms_of_plans
from recommender.ranking.value import Worth, change_total_usd, worth_for

# A change that saves less of the time is not worth a word: intervals are wider than that.
LEAST_SAVING_SHARE = 0.05
# Plans that are looked at where only the best is wanted.
MOST_NEAREST = 32

Estimating = Callable[[Plan], IterationEstimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What every change is judged on: the answer for the script as it is, and what that rests on."""

    answer: Recommendation
    gpus: Mapping[str, GpuSpec]
    draws: Draws
    terms_of: Callable[[Plan], SpotTerms]
    corrections: Mapping[str, Correction] | None


def ground_of(
    answer: Recommendation,
    gpus: Mapping[str, GpuSpec],
    *,
    rng: np.random.Generator,
    spot: SpotTerms | None = None,
    interruptions: Mapping[tuple[str, str], Interruptions] | None = None,
    corrections: Mapping[str, Correction] | None = None,
) -> Ground:
    """The ground of an answer.

    Args:
        answer: for the script as it is.
        gpus: the catalog entries of the answer's GPUs.
        rng: seeded as it was for the answer, so that luck never decides between the two.
        spot: as for the answer.
        interruptions: as for the answer.
        corrections: as for the answer's estimates.
    """
    terms_of = terms_of_plans(spot or ASSUMED_TERMS, interruptions)
    return Ground(answer=answer, gpus=gpus, draws=make_draws(rng), terms_of=terms_of, corrections=corrections)


def with_what_ifs(
    ground: Ground, trace: Trace, *, names: tuple[str, ...] | None = None, best_only: bool = False
) -> Recommendation:
    """The answer with options of a changed script beside it.

    Only those that are feasible and save 5 % of the time of the plan as it is.

    Args:
        ground: of the answer.
        trace: of the script as it is.
        names: of the changes; None for those of one line.
        best_only: leave out what ``best_what_if`` cannot name, which is most and takes time.
    """
    found = tuple(
        variant
        for change in changes(trace, names)
        for before, variant in changed_options(change, ground, best_only=best_only)
        if variant.feasible and _saves_time(variant, before)
    )
    return replace(ground.answer, what_ifs=found)


def changed_options(change: Change, ground: Ground, *, best_only: bool) -> Iterator[tuple[Option, Option]]:
    """Options that a change suits, before and after it."""
    # What a policy removes stays removed: a rule about places or prices asks for no precision.
    kept = (option for option in ground.answer.options if Code.POLICY not in option.removed_by)
    why_not_on = cache(lambda gpu: change.why_not_on(ground.gpus[gpu]))
    old = [o for o in kept if why_not_on(o.plan.gpu) is None and change.why_not_for(o.estimate) is None]
    estimate = _estimating(change, ground)
    if best_only and ground.answer.job.pick is None:
        old = _nearest(old, ground, estimate)
    return zip(old, _evaluated(change, old, ground, estimate), strict=True)


def changed_option(change: Change, option: Option, ground: Ground) -> Option:
    """One option with the script changed, whether that helps it or not."""
    (after,) = _evaluated(change, [option], ground, _estimating(change, ground))
    return after


def changed_id(option: Option, change: str) -> str:
    """The id of an option whose script is changed."""
    return f"{option.plan.id}+{change}"


def _estimating(change: Change, ground: Ground) -> Estimating:
    """Of the changed script, each made when it is first asked for."""
    job = job_of(change, ground.answer.job)
    estimate = estimating(change.trace, ground.gpus, job, corrections=ground.corrections)
    return lambda plan: _unsure(estimate(plan.gpu, plan.layout), change)


def _evaluated(
    change: Change, options: Sequence[Option], ground: Ground, estimate: Estimating
) -> Iterator[Option]:
    plans = [replace(option.plan, id=changed_id(option, change.name)) for option in options]
    estimates = {(plan.gpu, plan.layout): estimate(plan) for plan in plans}
    job = job_of(change, ground.answer.job)
    judged = evaluate_all(plans, estimates, ground.gpus, change.trace, job, ground.draws, ground.terms_of)
    for one in judged:
        steps = (*change.steps, *one.option.script_changes)
        yield replace(one.option, what_if=change.name, script_changes=steps)


def job_of(change: Change, job: Job) -> Job:
    """The job where steps take more samples: so many fewer of them, for as many samples in all."""

    def fewer(steps: int | None) -> int | None:
        return None if steps is None else math.ceil(steps / change.samples)

    return replace(
        job, iterations=fewer(job.iterations), iterations_per_epoch=fewer(job.iterations_per_epoch)
    )


def _nearest(options: Sequence[Option], ground: Ground, estimate: Estimating) -> list[Option]:
    """The recommended one, and those whose total would be least if training alone took less.

    How much less is estimated once for each GPU, where its best plan is: its other plans gain much the same.
    """
    answer, worth = ground.answer, worth_for(ground.answer.job)
    best: dict[str, Option] = {}
    for option in sorted(options, key=lambda option: _scaled_total_usd(option, 1.0, worth)):
        best.setdefault(option.plan.gpu, option)
    shares = {
        gpu: estimate(option.plan).iteration_s.p50 / option.estimate.iteration_s.p50
        for gpu, option in best.items()
    }

    def order(option: Option) -> tuple[bool, float, str]:
        total_usd = _scaled_total_usd(option, shares[option.plan.gpu], worth)
        return option.plan.id != answer.recommended, total_usd, option.plan.id

    return sorted(options, key=order)[:MOST_NEAREST]


def _scaled_total_usd(option: Option, share: float, worth: Worth) -> float:
    """The total if training took this share of its time."""
    expected = option.expected
    if not math.isfinite(expected.time_s):
        return math.inf
    train_s = expected.time_s - expected.wait_s - option.plan.startup_s
    saved_s = (1 - share) * train_s
    run_s = option.plan.startup_s + train_s
    usd = expected.counted_usd * (1 - saved_s / run_s if run_s else 1.0)
    return usd + worth.hour_usd * (expected.time_s - saved_s) / HOUR_S + change_total_usd(option, worth)


def _unsure(estimate: IterationEstimate, change: Change) -> IterationEstimate:
    sigma = 0.0 if change.is_in_estimate else change.sigma
    return replace(
        estimate,
        device_s=widened(estimate.device_s, sigma),
        iteration_s=widened(estimate.iteration_s, sigma),
        assumptions=(change.assumption, *estimate.assumptions),
    )


def _saves_time(changed: Option, option: Option) -> bool:
    limit_s = (1 - LEAST_SAVING_SHARE) * option.time_s.p50
    return math.isfinite(changed.time_s.p50) and changed.time_s.p50 <= limit_s
