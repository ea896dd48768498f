"""What each change of the script brings on the recommended machine, with its odds, the surest first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist

from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import ChangeGain, Interval, IterationEstimate, Option, Recommendation, Trace
from advisor.predict.interval import Z90
from advisor.predict.what_if.change import Change
from advisor.predict.what_if.making import CHANGES
from recommender.ranking.best_change import best_with
from recommender.ranking.what_if import Ground, changed_option

_COMMUNICATION = "communication"


def with_gains(
    answer: Recommendation, ground: Ground, trace: Trace, names: tuple[str, ...]
) -> Recommendation:
    """The answer with the gain of each change: what surely saves most first, what does not apply last.

    Args:
        answer: with its what-ifs, among which another machine is looked for.
        ground: of the answer.
        trace: of the script as it is.
        names: of the changes.
    """
    gains = [_gain(name, CHANGES[name](trace), answer, ground) for name in names]
    return replace(answer, gains=tuple(sorted(gains, key=_surely_saved_share, reverse=True)))


def _surely_saved_share(gain: ChangeGain) -> float:
    """With odds of 9 in 10: what is less sure never ranks better for it."""
    return -math.inf if gain.saved_share is None else gain.saved_share.p10


def _gain(name: str, change: Change | Finding, answer: Recommendation, ground: Ground) -> ChangeGain:
    before = answer.chosen
    if isinstance(change, Finding):
        return ChangeGain(change=name, why_not=_about_disks(name, before) or change)
    none = ChangeGain(change=name, instead=best_with(name, answer))
    if before is None:
        return replace(none, why_not=finding(Code.WHAT_IF_NO_MACHINE))
    why_not = change.why_not_on(ground.gpus[before.plan.gpu]) or change.why_not_for(before.estimate)
    if why_not is not None:
        return replace(none, why_not=why_not)
    after = changed_option(change, before, ground)
    if not after.feasible:
        codes = [str(code) for code in after.removed_by]
        return replace(
            none, why_not=finding(Code.WHAT_IF_NOT_FEASIBLE, gpu=before.plan.gpu, removed_by=codes)
        )
    gain = _gain_of(change, before, after, none)
    why_not = None if gain.saved_s else _about_disks(name, before)
    return gain if why_not is None else replace(none, why_not=why_not)


def _about_disks(name: str, before: Option | None) -> Finding | None:
    """Why a copy on local disks brings nothing where a data set is read: the plan has chosen already."""
    codes = {reason.code for reason in before.reasons} if name == "nvme" and before is not None else set()
    if Code.COPIED_LOCALLY in codes:
        return finding(Code.WHAT_IF_COPIED)
    return finding(Code.WHAT_IF_NOT_COPIED) if Code.READING in codes else None


def _gain_of(change: Change, before: Option, after: Option, none: ChangeGain) -> ChangeGain:
    share, p_faster = saved_share(before.estimate, after.estimate, change)
    saved_s, usd_per_h = _train_s(before) - _train_s(after), before.plan.usd_per_h
    storage_usd_per_h = before.plan.storage_usd_per_h
    return replace(
        none,
        option=after,
        saved_s=saved_s,
        saved_usd=None if usd_per_h is None else saved_s / HOUR_S * (usd_per_h + storage_usd_per_h),
        saved_share=share,
        p_faster=p_faster,
    )


def _train_s(option: Option) -> float:
    """Seconds of work, and of the copy that it needs."""
    return option.plan.copied_s + option.iterations * option.estimate.iteration_s.p50


def saved_share(
    before: IterationEstimate, after: IterationEstimate, change: Change
) -> tuple[Interval, float]:
    """The share of a sample's time that a change saves, and the odds that it saves any.

    Times of the same kernels have the same error before and after, so only their difference has one. New
    kernels are wrong in other ways, so their errors count as independent.

    Args:
        before: of the script as it is.
        after: of the changed one, as wide as what was not profiled makes it.
        change: what is new in it.
    """
    before_s, after_s = before.iteration_s.p50, after.iteration_s.p50 / change.samples
    saved_s, error_s = before_s - after_s, _error_s(before, after, change)
    share = Interval(
        p10=(saved_s - Z90 * error_s) / before_s,
        p50=saved_s / before_s,
        p90=(saved_s + Z90 * error_s) / before_s,
    )
    return share, NormalDist(0.0, error_s).cdf(saved_s)


def _error_s(before: IterationEstimate, after: IterationEstimate, change: Change) -> float:
    """Of the seconds of a sample that are saved."""
    old, new = _by_part(before, 1), _by_part(after, change.samples)
    parts = {part: (old.get(part, 0.0), new.get(part, 0.0)) for part in {**old, **new}}
    other = [pair for part, pair in parts.items() if part in change.new_kernels and not math.isclose(*pair)]
    moved_s = sum(abs(a - b) for part, (a, b) in parts.items() if part not in change.new_kernels)
    return math.hypot(
        _sigma(before) * sum(a for a, _ in other),
        _sigma(after) * sum(b for _, b in other),
        _sigma(before) * moved_s,
        change.sigma * after.iteration_s.p50 / change.samples,
    )


def _by_part(estimate: IterationEstimate, samples: int) -> Mapping[str, float]:
    """Seconds of a sample by family, and those of communication."""
    parts = {**estimate.by_family, _COMMUNICATION: estimate.communication_s}
    return {part: seconds / samples for part, seconds in parts.items()}


def _sigma(estimate: IterationEstimate) -> float:
    interval = estimate.iteration_s
    return math.log(interval.p90 / interval.p50) / Z90
