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

from advisor.core import values
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import NoGain
from advisor.core.findings.about_options import Reading, RemovedByMemory, RemovedByPolicy
from advisor.core.units import HOUR_S
from recommender.conditions import Conditions
from recommender.outcome.draws import make_draws
from recommender.ranking.checkpoint_ways import evaluate_ways
from recommender.ranking.choice import best_of
from recommender.ranking.value import Worth, change_total_usd, preference, worth_for

# A change that saves less of the time is not worth a word: intervals are wider than that.
LEAST_SAVING_SHARE = 0.05
# Plans that are looked at where only the best is wanted.
MOST_NEAREST = 32
_COMMUNICATION = "communication"


def suited(variant: values.Variant, answer: values.Recommendation) -> list[values.Option]:
    """Options that the variant may help, of the script as written.

    What a policy removes stays removed: a rule about places or prices asks for no precision.
    """
    kept = (option for option in answer.options if RemovedByPolicy.code not in option.removed_by)
    return [option for option in kept if _why_not(variant, option) is None]


def _why_not(variant: values.Variant, option: values.Option) -> Finding | None:
    is_fed = option.estimate.loading_s <= 0
    return variant.why_not_on.get(option.plan.gpu) or (variant.why_not_fed if is_fed else None)


def best_of_each_gpu(options: Iterable[values.Option], job: values.Job) -> list[values.Option]:
    """The option of least total for each GPU."""
    best: dict[str, values.Option] = {}
    worth = worth_for(job)
    for option in sorted(options, key=lambda option: _scaled_total_usd(option, 1.0, worth)):
        best.setdefault(option.plan.gpu, option)
    return list(best.values())


def nearest(
    options: Sequence[values.Option], workloads: Iterable[values.Workload], answer: values.Recommendation
) -> list[values.Option]:
    """The recommended one, and those whose total would be least if training alone took less.

    ``workloads`` are the variant's, for the best option of each GPU: its other options gain much the same.
    """
    worth = worth_for(answer.job)
    best = {option.plan.gpu: option for option in best_of_each_gpu(options, answer.job)}
    shares = {
        work.gpu.name: work.estimate.iteration_s.p50 / best[work.gpu.name].estimate.iteration_s.p50
        for work in workloads
    }

    def order(option: values.Option) -> tuple[bool, float, str]:
        total_usd = _scaled_total_usd(option, shares[option.plan.gpu], worth)
        return option.plan.id != answer.recommended, total_usd, option.plan.id

    return sorted(options, key=order)[:MOST_NEAREST]


def _scaled_total_usd(option: values.Option, share: float, worth: Worth) -> float:
    expected = option.expected
    if not math.isfinite(expected.time_s):
        return math.inf
    train_s = expected.time_s - expected.wait_s - option.plan.startup_s
    saved_s = (1 - share) * train_s
    run_s = option.plan.startup_s + train_s
    usd = expected.counted_usd * (1 - saved_s / run_s if run_s else 1.0)
    return usd + worth.hour_usd * (expected.time_s - saved_s) / HOUR_S + change_total_usd(option, worth)


def too_large(answer: values.Recommendation) -> list[values.Option]:
    """Options that memory alone removes, where nothing is recommended; none otherwise."""
    if answer.recommended is not None:
        return []
    return [option for option in answer.options if option.removed_by == (RemovedByMemory.code,)]


def that_divide(options: Iterable[values.Option], split: values.Split) -> list[values.Option]:
    """The options whose GPUs can share the model so; a hybrid within one node is full sharding."""
    is_hybrid = split.sharding is values.Sharding.HYBRID
    several = (o for o in options if (o.plan.num_nodes if is_hybrid else o.plan.num_gpus) > 1)
    return [option for option in several if split.suits(option.plan.layout)]


def changed_options(
    options: Sequence[values.Option],
    workloads: Sequence[values.Workload],
    job: values.Job,
    *,
    rng: np.random.Generator,
    conditions: Conditions,
) -> list[values.Option]:
    """The options with the variant of the script, whether that helps them or not.

    ``rng`` is seeded as it was for the answer, so that luck never decides between the two.
    """
    name = workloads[0].variant.name
    assert name is not None, "the script as written changes nothing"  # noqa: S101
    plans = [replace(option.plan, id=changed_id(option, name)) for option in options]
    judged = evaluate_ways(workloads, plans, job, make_draws(rng), conditions)
    return [item.option for item in judged]


def changed_id(option: values.Option, change: str) -> str:
    """The id of an option whose script is changed."""
    return f"{option.plan.id}+{change}"


def with_what_ifs(answer: values.Recommendation, changed: Iterable[values.Option]) -> values.Recommendation:
    """The answer with options of a changed script: those that do the job and save 5 % of the plan's time."""
    before_s = {option.plan.id: option.time_s.p50 for option in answer.options}

    def saves_time(option: values.Option) -> bool:
        limit_s = (1 - LEAST_SAVING_SHARE) * before_s[option.plan.id.removesuffix(f"+{option.what_if}")]
        return math.isfinite(option.time_s.p50) and option.time_s.p50 <= limit_s

    return replace(answer, what_ifs=tuple(one for one in changed if one.feasible and saves_time(one)))


def with_gains(
    answer: values.Recommendation, variants: Iterable[values.Variant], changed: Iterable[values.Option]
) -> values.Recommendation:
    """The answer with the gain of each change: what surely saves most first, what does not apply last.

    It has its what-ifs, among which another machine is looked for. The recommended one is among the changed
    options wherever that may gain.
    """
    after = {option.plan.id: option for option in changed}
    gains = [_gain(variant, answer, after) for variant in variants]
    # At p10: what is less sure never ranks better for it.
    gains.sort(key=lambda one: one.saved_share.p10 if one.saved_share else -math.inf, reverse=True)
    return replace(answer, gains=tuple(gains))


def _gain(
    variant: values.Variant, answer: values.Recommendation, changed: Mapping[str, values.Option]
) -> values.ChangeGain:
    before, name = answer.chosen, str(variant.name)
    if variant.why_not is not None:
        return values.ChangeGain(change=name, why_not=_about_disks(name, before) or variant.why_not)
    none = values.ChangeGain(change=name, instead=best_with(name, answer))
    if before is None:
        return replace(none, why_not=NoGain(why="no-machine"))
    why_not = _why_not(variant, before)
    if why_not is not None:
        return replace(none, why_not=why_not)
    after = changed[changed_id(before, name)]
    if not after.feasible:
        codes = list(after.removed_by)
        return replace(none, why_not=NoGain(why="not-feasible", gpu=before.plan.gpu, removed_by=codes))
    saved_s = _train_s(before) - _train_s(after)
    if not saved_s and (why_not := _about_disks(name, before)) is not None:
        return replace(none, why_not=why_not)
    share, p_faster = saved_share(before.estimate, after.estimate, variant)
    rent = before.plan.usd_per_h
    usd = None if rent is None else saved_s / HOUR_S * (rent + before.plan.storage_usd_per_h)
    return replace(none, option=after, saved_s=saved_s, saved_usd=usd, saved_share=share, p_faster=p_faster)


def _about_disks(name: str, before: values.Option | None) -> Finding | None:
    """Why a copy on local disks brings nothing where a data set is read: the plan has chosen already."""
    reasons = before.reasons if name == "nvme" and before is not None else ()
    ways = {reason.of for reason in reasons if isinstance(reason, Reading)}
    if "local-copy" in ways:
        return NoGain(why="copied")
    return NoGain(why="not-copied") if "each-epoch" in ways else None


def _train_s(option: values.Option) -> float:
    return option.plan.copied_s + option.iterations * option.estimate.iteration_s.p50


def saved_share(
    before: values.IterationEstimate, after: values.IterationEstimate, variant: values.Variant
) -> tuple[values.Interval, float]:
    """The share of a sample's time that a change saves, and the odds that it saves any.

    Times of the same kernels have the same error before and after, so only their difference has one. New
    kernels are wrong in other ways, so their errors count as independent. The changed estimate is as wide as
    what was not profiled makes it.
    """
    before_s, after_s = before.iteration_s.p50, after.iteration_s.p50 / variant.samples
    saved_s, error_s = before_s - after_s, _error_s(before, after, variant)
    share = values.Interval(
        p10=(saved_s - values.Z90 * error_s) / before_s,
        p50=saved_s / before_s,
        p90=(saved_s + values.Z90 * error_s) / before_s,
    )
    return share, NormalDist(0.0, error_s).cdf(saved_s)


def _error_s(
    before: values.IterationEstimate, after: values.IterationEstimate, variant: values.Variant
) -> float:
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


def _by_part(estimate: values.IterationEstimate, samples: int) -> Mapping[str, float]:
    parts = {**estimate.by_family, _COMMUNICATION: estimate.communication_s}
    return {part: seconds / samples for part, seconds in parts.items()}


def _sigma(estimate: values.IterationEstimate) -> float:
    interval = estimate.iteration_s
    return math.log(interval.p90 / interval.p50) / values.Z90


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfGain:
    """What a change of the script would bring."""

    change: str
    """Its name."""
    same: values.Option | None
    """The recommended machine with the changed script, if it gains."""
    instead: values.Option | None
    """What would then be recommended, if it is another machine."""

    @property
    def option(self) -> values.Option | None:
        """The one that speaks for the change; None where it helps nothing."""
        return self.same or self.instead


def best_what_if(answer: values.Recommendation) -> WhatIfGain | None:
    """The change that helps most on the recommended machine, or else by a move to another; None without one.

    Where nothing is recommended, the one that makes something feasible.
    """
    worth = worth_for(answer.job)
    changes = dict.fromkeys(option.what_if for option in answer.what_ifs if option.what_if is not None)
    by_id = {option.plan.id: option for option in answer.what_ifs}
    helping = []
    for change in changes:
        same = None if answer.chosen is None else by_id.get(changed_id(answer.chosen, change))
        what_if = WhatIfGain(change=change, same=same, instead=best_with(change, answer))
        if what_if.option is not None:
            helping.append(((same is None, preference(what_if.option, worth)), what_if))
    return min(helping, key=lambda item: item[0])[1] if helping else None


def best_with(change: str, answer: values.Recommendation) -> values.Option | None:
    """What would be recommended for the changed script, if it is another machine than the recommended one."""
    changed = [option for option in answer.what_ifs if option.what_if == change]
    able = [*(option for option in answer.options if option.feasible), *changed]
    if not able:
        return None
    chosen, then = answer.chosen, best_of(able, answer.job)
    ids = () if chosen is None else (chosen.plan.id, changed_id(chosen, change))
    return None if then.plan.id in ids else then
