"""What if the script were changed, or its model divided: options of the same plans with another workload.

Such an option never touches those of the script as written, their frontier or the choice among them. Its id
ends in the variant's name. A caller picks options here (`suited`, `nearest`, `too_large`), has workloads of
the variant made for their layouts, and hands them to `changed_options`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import NoGain, WhatIfNotFeasible
from advisor.core.findings.about_options import CopiedLocally, Reading, RemovedByMemory, RemovedByPolicy
from advisor.core.units import HOUR_S
from advisor.core.values import (
    Z90,
    ChangeGain,
    Interval,
    IterationEstimate,
    Job,
    Layout,
    Option,
    Plan,
    Recommendation,
    Sharding,
    Split,
    Variant,
    Workload,
)
from recommender.conditions import Conditions
from recommender.outcome.draws import make_draws
from recommender.ranking.choice import best_of
from recommender.ranking.value import Worth, change_total_usd, preference, worth_for
from recommender.ranking.ways import evaluate_ways

# A change that saves less of the time is not worth a word: intervals are wider than that.
LEAST_SAVING_SHARE = 0.05
# Plans that are looked at where only the best is wanted.
MOST_NEAREST = 32
_COMMUNICATION = "communication"


# --- Which options to look at ---------------------------------------------------------------------


def suited(variant: Variant, answer: Recommendation) -> list[Option]:
    """Options that the variant may help, of the script as written.

    What a policy removes stays removed: a rule about places or prices asks for no precision.
    """
    kept = (option for option in answer.options if RemovedByPolicy.code not in option.removed_by)
    return [option for option in kept if _why_not(variant, option) is None]


def _why_not(variant: Variant, option: Option) -> Finding | None:
    is_fed = option.estimate.loading_s <= 0
    return variant.why_not_on.get(option.plan.gpu) or (variant.why_not_fed if is_fed else None)


def best_of_each_gpu(options: Iterable[Option], job: Job) -> list[Option]:
    """The option of least total for each GPU."""
    best: dict[str, Option] = {}
    worth = worth_for(job)
    for option in sorted(options, key=lambda option: _scaled_total_usd(option, 1.0, worth)):
        best.setdefault(option.plan.gpu, option)
    return list(best.values())


def nearest(options: Sequence[Option], workloads: Iterable[Workload], answer: Recommendation) -> list[Option]:
    """The recommended one, and those whose total would be least if training alone took less.

    Args:
        workloads: of the variant, for the best option of each GPU: its other options gain much the same.
    """
    worth = worth_for(answer.job)
    best = {option.plan.gpu: option for option in best_of_each_gpu(options, answer.job)}
    shares = {
        work.gpu.name: work.estimate.iteration_s.p50 / best[work.gpu.name].estimate.iteration_s.p50
        for work in workloads
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


def too_large(answer: Recommendation) -> list[Option]:
    """Options that memory alone removes, where nothing is recommended; none otherwise."""
    if answer.recommended is not None:
        return []
    return [option for option in answer.options if option.removed_by == (RemovedByMemory.code,)]


def that_divide(options: Iterable[Option], split: Split) -> list[Option]:
    """The options whose GPUs can share the model so."""
    return [option for option in options if _divides(split, option.plan.layout)]


def _divides(split: Split, layout: Layout) -> bool:
    """Whether it makes a difference there; a hybrid within one node is full sharding."""
    most = layout.num_nodes if split.sharding is Sharding.HYBRID else layout.num_gpus
    return most > 1 and split.suits(layout)


# --- What becomes of them -------------------------------------------------------------------------


def changed_options(
    options: Sequence[Option],
    workloads: Sequence[Workload],
    job: Job,
    *,
    rng: np.random.Generator,
    conditions: Conditions,
) -> list[Option]:
    """The options with the variant of the script, whether that helps them or not.

    Args:
        rng: seeded as it was for the answer, so that luck never decides between the two.
    """
    plans = [_changed_plan(option, workloads[0].variant) for option in options]
    judged = evaluate_ways(workloads, plans, job, make_draws(rng), conditions)
    return [item.option for item in judged]


def _changed_plan(option: Option, variant: Variant) -> Plan:
    assert variant.name is not None, "the script as written changes nothing"  # noqa: S101
    return replace(option.plan, id=changed_id(option, variant.name))


def changed_id(option: Option, change: str) -> str:
    """The id of an option whose script is changed."""
    return f"{option.plan.id}+{change}"


def with_what_ifs(answer: Recommendation, changed: Iterable[Option]) -> Recommendation:
    """The answer with options of a changed script: those that do the job and save 5 % of the plan's time."""
    before = {option.plan.id: option for option in answer.options}
    found = tuple(
        option
        for option in changed
        if option.feasible and _saves_time(option, before[option.plan.id.removesuffix(f"+{option.what_if}")])
    )
    return replace(answer, what_ifs=found)


def _saves_time(changed: Option, option: Option) -> bool:
    limit_s = (1 - LEAST_SAVING_SHARE) * option.time_s.p50
    return math.isfinite(changed.time_s.p50) and changed.time_s.p50 <= limit_s


# --- What each change brings on the recommended machine -------------------------------------------


def with_gains(
    answer: Recommendation, variants: Iterable[Variant], changed: Iterable[Option]
) -> Recommendation:
    """The answer with the gain of each change: what surely saves most first, what does not apply last.

    Args:
        answer: with its what-ifs, among which another machine is looked for.
        changed: options of the variants, among them the recommended one wherever that may gain.
    """
    after = {option.plan.id: option for option in changed}
    gains = [_gain(variant, answer, after) for variant in variants]
    return replace(answer, gains=tuple(sorted(gains, key=_surely_saved_share, reverse=True)))


def _surely_saved_share(gain: ChangeGain) -> float:
    """With odds of 9 in 10: what is less sure never ranks better for it."""
    return -math.inf if gain.saved_share is None else gain.saved_share.p10


def _gain(variant: Variant, answer: Recommendation, changed: Mapping[str, Option]) -> ChangeGain:
    before, name = answer.chosen, str(variant.name)
    if variant.why_not is not None:
        return ChangeGain(change=name, why_not=_about_disks(name, before) or variant.why_not)
    none = ChangeGain(change=name, instead=best_with(name, answer))
    if before is None:
        return replace(none, why_not=NoGain(why="no-machine"))
    why_not = _why_not(variant, before)
    if why_not is not None:
        return replace(none, why_not=why_not)
    after = changed[changed_id(before, name)]
    if not after.feasible:
        codes = list(after.removed_by)
        return replace(none, why_not=WhatIfNotFeasible(gpu=before.plan.gpu, removed_by=codes))
    gain = _gain_of(variant, before, after, none)
    why_not = None if gain.saved_s else _about_disks(name, before)
    return gain if why_not is None else replace(none, why_not=why_not)


def _about_disks(name: str, before: Option | None) -> Finding | None:
    """Why a copy on local disks brings nothing where a data set is read: the plan has chosen already."""
    codes = {type(reason) for reason in before.reasons} if name == "nvme" and before is not None else set()
    if CopiedLocally in codes:
        return NoGain(why="copied")
    return NoGain(why="not-copied") if Reading in codes else None


def _gain_of(variant: Variant, before: Option, after: Option, none: ChangeGain) -> ChangeGain:
    share, p_faster = saved_share(before.estimate, after.estimate, variant)
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
    before: IterationEstimate, after: IterationEstimate, variant: Variant
) -> tuple[Interval, float]:
    """The share of a sample's time that a change saves, and the odds that it saves any.

    Times of the same kernels have the same error before and after, so only their difference has one. New
    kernels are wrong in other ways, so their errors count as independent.

    Args:
        after: of the changed one, as wide as what was not profiled makes it.
    """
    before_s, after_s = before.iteration_s.p50, after.iteration_s.p50 / variant.samples
    saved_s, error_s = before_s - after_s, _error_s(before, after, variant)
    share = Interval(
        p10=(saved_s - Z90 * error_s) / before_s,
        p50=saved_s / before_s,
        p90=(saved_s + Z90 * error_s) / before_s,
    )
    return share, NormalDist(0.0, error_s).cdf(saved_s)


def _error_s(before: IterationEstimate, after: IterationEstimate, variant: Variant) -> float:
    """Of the seconds of a sample that are saved."""
    old, new = _by_part(before, 1), _by_part(after, variant.samples)
    parts = {part: (old.get(part, 0.0), new.get(part, 0.0)) for part in {**old, **new}}
    other = [pair for part, pair in parts.items() if part in variant.new_kernels and not math.isclose(*pair)]
    moved_s = sum(abs(a - b) for part, (a, b) in parts.items() if part not in variant.new_kernels)
    return math.hypot(
        _sigma(before) * sum(a for a, _ in other),
        _sigma(after) * sum(b for _, b in other),
        _sigma(before) * moved_s,
        variant.sigma * after.iteration_s.p50 / variant.samples,
    )


def _by_part(estimate: IterationEstimate, samples: int) -> Mapping[str, float]:
    """Seconds of a sample by family, and those of communication."""
    parts = {**estimate.by_family, _COMMUNICATION: estimate.communication_s}
    return {part: seconds / samples for part, seconds in parts.items()}


def _sigma(estimate: IterationEstimate) -> float:
    interval = estimate.iteration_s
    return math.log(interval.p90 / interval.p50) / Z90


# --- Which helps most -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a change of the script would bring."""

    change: str
    """Its name."""
    same: Option | None
    """The recommended machine with the changed script, if it gains."""
    instead: Option | None
    """What would then be recommended, if it is another machine."""

    @property
    def option(self) -> Option | None:
        """The one that speaks for the change; None where it helps nothing."""
        return self.same or self.instead


def best_what_if(answer: Recommendation) -> WhatIf | None:
    """The change that helps most on the recommended machine, or else by a move to another; None without one.

    Where nothing is recommended, the one that makes something feasible.
    """
    worth = worth_for(answer.job)
    changes = dict.fromkeys(option.what_if for option in answer.what_ifs if option.what_if is not None)
    helping = [
        ((what_if.same is None, preference(what_if.option, worth)), what_if)
        for what_if in (_what_if(change, answer) for change in changes)
        if what_if.option is not None
    ]
    return min(helping, key=lambda item: item[0])[1] if helping else None


def _what_if(change: str, answer: Recommendation) -> WhatIf:
    changed = [option for option in answer.what_ifs if option.what_if == change]
    chosen = answer.chosen
    same = next((o for o in changed if chosen is not None and o.plan.id == changed_id(chosen, change)), None)
    return WhatIf(change=change, same=same, instead=best_with(change, answer))


def best_with(change: str, answer: Recommendation) -> Option | None:
    """What would be recommended for the changed script, if it is another machine than the recommended one."""
    changed = [option for option in answer.what_ifs if option.what_if == change]
    able = [*(option for option in answer.options if option.feasible), *changed]
    if not able:
        return None
    chosen, then = answer.chosen, best_of(able, answer.job)
    ids = () if chosen is None else (chosen.plan.id, changed_id(chosen, change))
    return None if then.plan.id in ids else then
