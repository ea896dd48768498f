"""The way of the product from a trace to its Recommendation, with estimates that a test gives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from advisor.core.values import (
    GpuSpec,
    IterationEstimate,
    Job,
    Layout,
    Option,
    Plan,
    Recommendation,
    Script,
    Trace,
    Workload,
)
from advisor.predict.interval import Correction
from advisor.service.recommend.pipeline import Places, with_splits, with_variants
from advisor.workloads.script_versions import as_written
from advisor.workloads.step_counts import length_of
from recommender import Conditions
from recommender import recommend as recommended
from recommender.engine import judge as judged
from recommender.outcome.draws import Draws
from recommender.outcome.evaluate import Judged, evaluate_all
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, restarting
from tests.builders import make_trace

Estimates = Mapping[tuple[str, Layout], IterationEstimate]


def make_script(**changes: Any) -> Script:
    """What is known of the script of `make_trace`."""
    return as_written(make_trace(**changes), {}, Job(iterations=1)).script


def workloads_of(
    trace: Trace, estimates: Iterable[IterationEstimate], gpus: Mapping[str, GpuSpec], job: Job
) -> list[Workload]:
    """Workloads of the script as written, with these estimates."""
    version = as_written(trace, gpus, job)
    return [version.workload(gpus[estimate.gpu], estimate) for estimate in estimates]


def estimates_for(
    trace: Trace, plans: Sequence[Plan], gpus: Mapping[str, GpuSpec], job: Job | None = None
) -> dict[tuple[str, Layout], IterationEstimate]:
    """What is predicted for the plans."""
    workloads = as_written(trace, gpus, job or Job(iterations=1)).workloads(plans)
    return {(workload.gpu.name, workload.layout): workload.estimate for workload in workloads}


def recommend(
    trace: Trace,
    estimates: Estimates,
    gpus: Mapping[str, GpuSpec],
    plans: Sequence[Plan],
    job: Job,
    *,
    rng: np.random.Generator | None = None,
    policy: Any = None,
    **conditions: Any,
) -> Recommendation:
    """Rank plans by given estimates, by default with one seed."""
    workloads, rng = workloads_of(trace, _there(estimates), gpus, job), rng or np.random.default_rng(0)
    return recommended(workloads, plans, job, policy, rng=rng, conditions=_conditions(**conditions))


def judge(
    trace: Trace,
    estimates: Estimates,
    gpus: Mapping[str, GpuSpec],
    plans: Sequence[Plan],
    job: Job,
    *,
    rng: np.random.Generator | None = None,
    policy: Any = None,
    **conditions: Any,
) -> list[Judged]:
    """Judge plans by given estimates, by default with one seed."""
    workloads, rng = workloads_of(trace, _there(estimates), gpus, job), rng or np.random.default_rng(0)
    return judged(workloads, plans, job, policy, rng=rng, conditions=_conditions(**conditions))


def _there(estimates: Estimates) -> list[IterationEstimate]:
    """Each estimate on the layout for which it is given."""
    return [replace(estimate, layout=layout) for (_, layout), estimate in estimates.items()]


def _conditions(spot: SpotTerms | None = None, **others: Any) -> Conditions:
    return Conditions(spot=spot or ASSUMED_TERMS, **others)


def evaluate(
    plan: Plan,
    estimate: IterationEstimate,
    gpu: GpuSpec,
    trace: Trace,
    job: Job,
    draws: Draws,
    spot: SpotTerms,
) -> Option:
    """What one plan means for the job, under these terms."""
    workloads = workloads_of(trace, [replace(estimate, layout=plan.layout)], {gpu.name: gpu}, job)
    (one,) = evaluate_all(workloads, [plan], job, draws, lambda plan: restarting(plan, spot))
    return one.option


def evaluated(
    plans: Sequence[Plan],
    estimates: Estimates,
    gpus: Mapping[str, GpuSpec],
    trace: Trace,
    job: Job,
    draws: Draws,
    terms_of: Callable[[Plan], SpotTerms],
) -> list[Judged]:
    """What each plan means for the job."""
    return list(evaluate_all(workloads_of(trace, _there(estimates), gpus, job), plans, job, draws, terms_of))


def places(
    plans: Sequence[Plan],
    gpus: Mapping[str, GpuSpec],
    job: Job,
    corrections: Mapping[str, Correction] | None = None,
) -> Places:
    """Plans without a policy, and nothing known beside them."""
    return Places(
        plans=tuple(plans),
        gpus=gpus,
        job=job,
        conditions=Conditions(),
        policy=None,
        corrections=corrections or {},
    )


def with_changes(
    answer: Recommendation, gpus: Mapping[str, GpuSpec], trace: Trace, names: tuple[str, ...] | None
) -> Recommendation:
    """The answer, drawn with the product's seed, and what changes of its script bring."""
    plans = [option.plan for option in answer.options]
    return with_variants(answer, trace, places(plans, gpus, answer.job), names)


def with_divisions(answer: Recommendation, gpus: Mapping[str, GpuSpec], trace: Trace) -> Recommendation:
    """The answer, drawn with the product's seed, and what divisions of its model bring."""
    plans = [option.plan for option in answer.options]
    return with_splits(answer, trace, places(plans, gpus, answer.job))


def num_iterations(trace: Trace, job: Job, num_gpus: int) -> int:
    """Optimizer steps of the job on so many GPUs."""
    return length_of(trace, job).whole(num_gpus)


def iterations_as_profiled(trace: Trace, job: Job) -> int | None:
    """Optimizer steps of an epoch in the profiled world."""
    return length_of(trace, job).as_profiled()
