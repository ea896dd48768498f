"""What if the script were changed: the same plans, timed for the script as the change would make it.

A what-if never touches the options of the script as it is, their frontier or the choice among them. It is an
option of its own, whose id ends in the change's name. Another kind of change is one more ``Change``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import GpuSpec, IterationEstimate, Option, Recommendation, Trace
from advisor.predict.autocast import under_autocast
from advisor.predict.calibration.receipt_corrections import Correction
from advisor.predict.feeding import faster_feeding
from advisor.predict.interval import widened
from advisor.predict.tf32 import allow_tf32
from advisor.pricing.catalog.interruptions import Interruptions
from recommender.outcome.draws import make_draws
from recommender.outcome.estimates import estimates_for
from recommender.outcome.evaluate import EstimateKey, evaluate_all
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, terms_of_plans
from recommender.plans.software import capability
from recommender.ranking.value import Worth, change_total_usd, worth_for

# A changed script was never profiled. Against profiles of scripts with autocast written in, predicted times
# are off by 8 % at most (docs/methods/recommendation.md).
SIGMA_CHANGED = 0.1
TF32_LEAST = (8, 0)
# A change that saves less of the time is not worth a word: intervals are wider than that.
LEAST_SAVING_SHARE = 0.05
# Plans that are looked at where only the best is wanted.
MOST_NEAREST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to the script.

    Attributes:
        name: ends the ids of its options.
        trace: the script's as the change would make it.
        suits: whether a GPU gains from it at all.
        steps: what to change in the script.
        helps: whether an option has what the change is against.
        assumption: what its estimates rest on besides.
    """

    name: str
    trace: Trace
    suits: Callable[[GpuSpec], bool]
    steps: tuple[Finding, ...]
    assumption: Finding
    helps: Callable[[Option], bool] = lambda _: True


def with_what_ifs(
    answer: Recommendation,
    trace: Trace,
    gpus: Mapping[str, GpuSpec],
    *,
    rng: np.random.Generator,
    spot: SpotTerms | None = None,
    interruptions: Mapping[tuple[str, str], Interruptions] | None = None,
    best_only: bool = False,
    corrections: Mapping[str, Correction] | None = None,
) -> Recommendation:
    """The answer with options of a changed script beside it.

    Only those that are feasible and save 5 % of the time.

    Args:
        answer: for the script as it is.
        trace: of the script as it is.
        gpus: the catalog entries of the answer's GPUs.
        rng: seeded as it was for the answer, so that luck never decides between the two.
        spot: as for the answer.
        interruptions: as for the answer.
        best_only: leave out what ``best_what_if`` cannot name, which is most and takes time.
        corrections: as for the answer's estimates.
    """
    draws, terms_of = make_draws(rng), terms_of_plans(spot or ASSUMED_TERMS, interruptions)

    def changed(change: Change) -> Iterator[Option]:
        # What a policy removes stays removed: a rule about places or prices asks for no precision.
        kept = (option for option in answer.options if Code.POLICY not in option.removed_by)
        old = [option for option in kept if change.suits(gpus[option.plan.gpu]) and change.helps(option)]
        plans = [option.plan for option in old]
        estimates = estimates_for(change.trace, plans, gpus, answer.job, corrections=corrections)
        unsure = {key: _unsure(estimate, change) for key, estimate in estimates.items()}
        if best_only:
            old = _nearest(old, unsure, answer)
        plans = [replace(o.plan, id=changed_id(o, change.name)) for o in old]
        judged = evaluate_all(plans, unsure, gpus, change.trace, answer.job, draws, terms_of)
        for before, after in zip(old, judged, strict=True):
            steps = (*change.steps, *after.option.script_changes)
            variant = replace(after.option, what_if=change.name, script_changes=steps)
            if variant.feasible and _saves_time(variant, before):
                yield variant

    variants = tuple(option for change in changes(trace) for option in changed(change))
    return replace(answer, what_ifs=variants)


def changed_id(option: Option, change: str) -> str:
    """The id of an option whose script is changed."""
    return f"{option.plan.id}+{change}"


def _nearest(
    options: Sequence[Option], estimates: Mapping[EstimateKey, IterationEstimate], answer: Recommendation
) -> list[Option]:
    """The recommended one, and those whose total would be least if training alone took less."""
    if answer.job.pick is not None:
        return list(options)
    worth = worth_for(answer.job)

    def total(option: Option) -> float:
        iteration_s = estimates[option.plan.gpu, option.plan.layout].iteration_s.p50
        return _scaled_total_usd(option, iteration_s / option.estimate.iteration_s.p50, worth)

    def order(option: Option) -> tuple[bool, float, str]:
        return option.plan.id != answer.recommended, total(option), option.plan.id

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


def changes(trace: Trace) -> Iterator[Change]:
    """Changes of precision that the script leaves open, and of its input pipeline."""
    yield from _tf32(trace)
    yield from _autocast(trace, "bf16", "bfloat16", suits=_has_bf16)
    yield from _autocast(trace, "fp16", "float16", suits=_has_fp16_only)
    yield from _fed_faster(trace)


def _fed_faster(trace: Trace) -> Iterator[Change]:
    for feeding in faster_feeding(trace):
        yield Change(
            name=feeding.name,
            trace=feeding.trace,
            suits=lambda _: True,
            helps=lambda option: option.estimate.loading_s > 0,
            steps=(finding(feeding.step),),
            assumption=finding(Code.WHAT_IF_FED_FASTER),
        )


def _tf32(trace: Trace) -> Iterator[Change]:
    changed = allow_tf32(trace)
    if changed is not None:
        yield Change(
            name="tf32",
            trace=changed,
            suits=_has_tf32,
            steps=(finding(Code.ALLOW_TF32),),
            assumption=finding(Code.WHAT_IF_TF32),
        )


def _has_tf32(gpu: GpuSpec) -> bool:
    return "tf32" in gpu.tensor_flops_per_s and (capability(gpu) or (0, 0)) >= TF32_LEAST


def _has_bf16(gpu: GpuSpec) -> bool:
    return "bf16" in gpu.tensor_flops_per_s


def _has_fp16_only(gpu: GpuSpec) -> bool:
    """Where there is bfloat16, it is as fast and needs no scaler."""
    return "fp16" in gpu.tensor_flops_per_s and not _has_bf16(gpu)


def _autocast(trace: Trace, name: str, dtype: str, *, suits: Callable[[GpuSpec], bool]) -> Iterator[Change]:
    changed = under_autocast(trace, dtype)
    if changed is None:
        return
    steps = [finding(Code.USE_AUTOCAST, dtype=dtype)]
    if dtype == "float16":
        steps.append(finding(Code.ADD_GRAD_SCALER))
    yield Change(
        name=name,
        trace=changed,
        suits=suits,
        steps=tuple(steps),
        assumption=finding(Code.WHAT_IF_AUTOCAST, dtype=dtype),
    )


def _unsure(estimate: IterationEstimate, change: Change) -> IterationEstimate:
    return replace(
        estimate,
        device_s=widened(estimate.device_s, SIGMA_CHANGED),
        iteration_s=widened(estimate.iteration_s, SIGMA_CHANGED),
        assumptions=(change.assumption, *estimate.assumptions),
    )


def _saves_time(changed: Option, option: Option) -> bool:
    limit_s = (1 - LEAST_SAVING_SHARE) * option.time_s.p50
    return math.isfinite(changed.time_s.p50) and changed.time_s.p50 <= limit_s
