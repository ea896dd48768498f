"""A trace, plans and what is known beside them -> the Recommendation: workloads first, then their ranking."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.core.values import GpuSpec, Job, Option, Plan, Recommendation, Scaling, Trace, Variant, Work

if TYPE_CHECKING:
    import numpy as np

    from advisor.predict.interval import Correction
    from advisor.workloads.cpu import CpuSteps
    from advisor.workloads.script_versions import Version
    from recommender import Conditions
    from recommender.outcome.evaluate import Judged
    from recommender.policy.merge import Policy

SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What could be used or rented, the rules for it, and the job as these rules have it."""

    plans: tuple[Plan, ...]
    gpus: Mapping[str, GpuSpec]
    """The catalog entries of the plans' GPUs."""
    job: Job
    conditions: Conditions
    policy: Policy | None
    corrections: Mapping[str, Correction]
    """By GPU, what earlier runs say of predictions."""
    cpu: CpuSteps | None = None
    """Steps that were timed on this machine's CPU, which is one of the plans then."""
    warnings: tuple[Finding, ...] = ()
    """About the places, whatever the script does."""


def recommendation_of(trace: Trace, places: Places) -> Recommendation:
    """Rank the places for the script as it is written.

    Raises:
        InputError: the length of the job is unknown.
        NoOfferError: there is no place.
        PolicyViolationError: the policy removes every place.
    """
    from recommender import recommend

    workloads = _as_written(trace, places).workloads(places.plans)
    return recommend(
        workloads, places.plans, places.job, places.policy, rng=_rng(), conditions=places.conditions
    )


def with_batch_held(answer: Recommendation, trace: Trace, places: Places) -> Recommendation:
    """The answer with the recommended plan for a script that holds its batch, where steps grow larger.

    Without it where the batch has fewer samples than the plan has GPUs.
    """
    chosen = answer.chosen
    if chosen is None or Work.LEARNING_RATE not in chosen.work or places.job.scaling is not None:
        return answer
    held = replace(places, job=replace(places.job, scaling=Scaling.STRONG), policy=None)
    plan = next(plan for plan in places.plans if plan.id == chosen.plan.id)
    (judged,) = judged_of(trace, held, [plan])
    is_held = Work.LEARNING_RATE not in judged.option.work
    return replace(answer, batch_held=judged.option) if is_held else answer


def judged_of(trace: Trace, places: Places, plans: Sequence[Plan]) -> list[Judged]:
    """Some of the places with the draws behind their figures, feasible or not; errors as above."""
    from recommender.engine import judge

    workloads = _as_written(trace, places).workloads(plans)
    return judge(workloads, plans, places.job, places.policy, rng=_rng(), conditions=places.conditions)


def with_variants(
    answer: Recommendation, trace: Trace, places: Places, names: tuple[str, ...] | None
) -> Recommendation:
    """The answer with options of a changed script beside it.

    Args:
        names: of the changes; None for the best of one line, or where no change lets a place do the job, for
            divisions of the model.
    """
    from advisor.workloads.script_versions import ONE_LINE, changed
    from recommender.ranking.what_ifs import with_gains, with_what_ifs

    asked = ONE_LINE if names is None else names
    variants = [changed(name, trace, places.gpus, places.job, places.corrections) for name in asked]
    versions = [version for version in variants if not isinstance(version, Variant)]
    if names is None:
        versions = _most_helpful(versions, answer, places)
    options = [
        option
        for version in versions
        for option in _changed_options(version, answer, places, best_only=names is None)
    ]
    answer = with_what_ifs(answer, options)
    if names is None:
        # A line that makes it fit is less work than another way to train.
        may_divide = not answer.what_ifs and places.job.split.is_none
        return with_splits(answer, trace, places) if may_divide else answer
    return with_gains(answer, [one if isinstance(one, Variant) else one.variant for one in variants], options)


def _most_helpful(versions: list[Version], answer: Recommendation, places: Places) -> list[Version]:
    """The one that helps the recommended machine most, whatever else the others do; all where none does."""
    from recommender.ranking.value import preference, worth_for
    from recommender.ranking.what_ifs import with_what_ifs

    helping = []
    for version in versions:
        chosen = [one for one in _suited(version, answer, places) if one.plan.id == answer.recommended]
        helped = with_what_ifs(answer, _options_of(version, chosen, places)).what_ifs
        helping += [(preference(option, worth_for(answer.job)), version) for option in helped]
    return [min(helping, key=lambda one: one[0])[1]] if helping else versions


def _suited(version: Version, answer: Recommendation, places: Places) -> list[Option]:
    from recommender.ranking.what_ifs import suited

    # A changed script was not timed on the CPU.
    cpu = None if places.cpu is None else places.cpu.plan.gpu
    return [option for option in suited(version.variant, answer) if option.plan.gpu != cpu]


def _changed_options(
    version: Version, answer: Recommendation, places: Places, *, best_only: bool
) -> list[Option]:
    """Options that a change suits, with the change; of many only those that could be the best."""
    from recommender.ranking.what_ifs import best_of_each_gpu, nearest

    options = _suited(version, answer, places)
    if best_only and places.job.pick is None:
        probes = best_of_each_gpu(options, places.job)
        options = nearest(options, version.workloads(option.plan for option in probes), answer)
    return _options_of(version, options, places)


def with_splits(answer: Recommendation, trace: Trace, places: Places) -> Recommendation:
    """The answer with options of a divided model beside it, if memory alone stands against every other."""
    from advisor.workloads.script_versions import divided
    from recommender.ranking.what_ifs import that_divide, too_large

    if not (large := too_large(answer)):
        return answer
    for versions in divided(trace, places.gpus, places.job, places.corrections):
        options = [
            option
            for version in versions
            for option in _options_of(version, that_divide(large, version.split), places)
        ]
        found = tuple(option for option in options if option.feasible)
        if found:
            return replace(answer, what_ifs=found)
    return answer


def _options_of(version: Version, options: Sequence[Option], places: Places) -> list[Option]:
    from recommender.ranking.what_ifs import changed_options

    if not options:
        return []
    workloads = version.workloads([option.plan for option in options])
    return changed_options(options, workloads, places.job, rng=_rng(), conditions=places.conditions)


def _as_written(trace: Trace, places: Places) -> Version:
    from advisor.workloads.script_versions import as_written

    return as_written(trace, places.gpus, places.job, places.corrections, places.cpu)


def _rng() -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(SEED)


# Our matrices are small, and more threads of BLAS only wait for each other.
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import numpy with one BLAS thread, unless the user set a number or it is there already.

    OpenBLAS reads the variable once, as it is loaded; it is taken back, so that no child process sees it.
    """
    if "numpy" in sys.modules or BLAS_THREADS in os.environ:
        return
    os.environ[BLAS_THREADS] = "1"
    try:
        import numpy as np  # noqa: F401
    finally:
        del os.environ[BLAS_THREADS]
