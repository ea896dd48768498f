"""A trace, plans and what is known beside them -> the Recommendation: workloads first, then their ranking."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from advisor.core.errors import StoreError
from advisor.core.findings import Finding
from advisor.core.values import GpuSpec, Job, Option, Plan, Recommendation, Scaling, Trace, Variant, Work
from advisor.service.listening import Listener
from advisor.service.prices.live import now
from advisor.store.database import open_store
from advisor.store.handle import Store

if TYPE_CHECKING:
    import numpy as np

    from advisor.config.settings import PredictSettings, StoreSettings
    from advisor.predict.interval import ComparedRun, Correction
    from advisor.workloads.cpu import CpuSteps
    from advisor.workloads.script_versions import Version
    from recommender import Conditions
    from recommender.outcome.evaluate import Judged
    from recommender.policy import Policy


SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What could be used or rented, the rules for it, and the job as these rules have it.

    Attributes:
        gpus: the catalog entries of the plans' GPUs.
        corrections: by GPU, what earlier runs say of predictions.
        cpu: steps that were timed on this machine's CPU, which is one of the plans then.
    """

    plans: tuple[Plan, ...]
    gpus: Mapping[str, GpuSpec]
    job: Job
    conditions: Conditions
    policy: Policy | None
    corrections: Mapping[str, Correction]
    cpu: CpuSteps | None = None


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
    """The answer with the recommended plan for a script that holds its batch, where steps grow larger."""
    chosen = answer.chosen
    if chosen is None or Work.LEARNING_RATE not in chosen.work or places.job.scaling is not None:
        return answer
    held = replace(places, job=replace(places.job, scaling=Scaling.STRONG), policy=None)
    plan = next(plan for plan in places.plans if plan.id == chosen.plan.id)
    (judged,) = judged_of(trace, held, [plan])
    return replace(answer, batch_held=judged.option)


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
        answer: for the script as it is written.
        trace: of that script.
        places: as for the answer.
        names: of the changes; None for the best of one line, or where no change lets a place do the job, for
            divisions of the model.
    """
    from advisor.workloads.script_versions import ONE_LINE, changed
    from recommender.ranking.variants import with_gains, with_what_ifs

    versions = [
        changed(name, trace, places.gpus, places.job, places.corrections)
        for name in (ONE_LINE if names is None else names)
    ]
    options = [
        option
        for version in versions
        if not isinstance(version, Variant)
        for option in _changed_options(version, answer, places, best_only=names is None)
    ]
    answer = with_what_ifs(answer, options)
    if names is None:
        # A line that makes it fit is less work than another way to train.
        may_divide = not answer.what_ifs and places.job.split.is_none
        return with_splits(answer, trace, places) if may_divide else answer
    variants = [version if isinstance(version, Variant) else version.variant for version in versions]
    return with_gains(answer, variants, options)


def _changed_options(
    version: Version, answer: Recommendation, places: Places, *, best_only: bool
) -> list[Option]:
    """Options that a change suits, with the change; of many only those that could be the best."""
    from recommender.ranking.variants import best_of_each_gpu, nearest, suited

    on_gpus = _gpu_plans(places)
    options = [option for option in suited(version.variant, answer) if option.plan.id in on_gpus]
    if best_only and places.job.pick is None:
        probes = best_of_each_gpu(options, places.job)
        options = nearest(options, version.workloads(option.plan for option in probes), answer)
    return _options_of(version, options, places)


def with_splits(answer: Recommendation, trace: Trace, places: Places) -> Recommendation:
    """The answer with options of a divided model beside it, if memory alone stands against every other."""
    from advisor.workloads.script_versions import divided
    from recommender.ranking.variants import that_divide, too_large

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
    from recommender.ranking.variants import changed_options

    if not options:
        return []
    workloads = version.workloads([option.plan for option in options])
    return changed_options(options, workloads, places.job, rng=_rng(), conditions=places.conditions)


def _gpu_plans(places: Places) -> set[str]:
    """Nobody timed a changed script on the CPU."""
    return {plan.id for plan in places.plans if places.cpu is None or plan.gpu != places.cpu.plan.gpu}


def _as_written(trace: Trace, places: Places) -> Version:
    from advisor.workloads.script_versions import as_written

    return as_written(trace, places.gpus, places.job, places.corrections, places.cpu)


def _rng() -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(SEED)


# --- What past runs say --------------------------------------------------------------------------------


MEMORY = timedelta(days=365)
"""Older runs say little of today's drivers and libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """What recorded runs say of predictions."""

    corrections: Mapping[str, Correction] = field(default_factory=dict)
    drifts: tuple[Finding, ...] = ()

    def drifts_on(self, gpus: Container[object]) -> tuple[Finding, ...]:
        """Those of these GPUs."""
        return tuple(drift for drift in self.drifts if drift.facts["gpu"] in gpus)


def past_runs(settings: PredictSettings, database: StoreSettings, listener: Listener) -> PastRuns:
    """What runs of a year say; nothing where ``predict.receipts`` is off or nothing is recorded.

    A database that cannot be read leaves predictions as they ship, with a warning.
    """
    if not settings.receipts:
        return PastRuns()
    try:
        store = open_store(database.url, must_exist=True)
        if store is None:
            return PastRuns()
        with store:
            runs = compared_runs(store)
    except StoreError as error:
        listener.warn([f"predictions count no receipts: {error}"])
        return PastRuns()
    if not runs:
        return PastRuns()
    from advisor.predict.interval import corrections_of, drifts_of

    return PastRuns(corrections=corrections_of(runs), drifts=tuple(drifts_of(runs)))


def compared_runs(store: Store) -> list[ComparedRun]:
    """Runs that followed a recommendation on the GPUs that it named, in order of time.

    Raises StoreError: the database cannot be read.
    """
    from advisor.predict.interval import ComparedRun
    from advisor.store.ledger import recommendations, runs

    since = now() - MEMORY
    done = [run for run in runs(store, since=since) if run.step_s is not None and run.recommendation_id]
    if not done:
        return []
    # A run may follow advice that is older than it.
    entries = {entry.id: entry for entry in recommendations(store, since=since - MEMORY)}
    compared = []
    for run in done:
        entry = entries.get(run.recommendation_id or "")
        if entry is None or entry.iteration_s is None or not entry.uncorrected_p50_s or run.step_s is None:
            continue
        if (entry.gpu, entry.num_gpus) == (run.gpu, run.num_gpus) and run.step_s.p50 > 0:
            compared.append(
                ComparedRun(
                    gpu=run.gpu,
                    job=f"{run.project}/{run.script}",
                    measured_s=run.step_s.p50,
                    predicted_s=entry.iteration_s,
                    uncorrected_p50_s=entry.uncorrected_p50_s,
                )
            )
    return compared
