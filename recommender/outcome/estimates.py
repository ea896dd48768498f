"""The IterationEstimates that a list of plans needs, each made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from advisor.core.arguments import check_each, check_kind
from advisor.core.errors import InputError, did_you_mean
from advisor.core.values import GpuSpec, IterationEstimate, Job, Layout, Plan, Trace
from advisor.predict.calibration.receipt_corrections import Correction
from advisor.predict.iteration import predict_counts, prediction_on
from recommender.outcome.steps import steps_of


def estimates_for(
    trace: Trace,
    plans: Iterable[Plan],
    gpus: Mapping[str, GpuSpec],
    job: Job | None = None,
    *,
    corrections: Mapping[str, Correction] | None = None,
) -> dict[tuple[str, Layout], IterationEstimate]:
    """By (GPU name, layout).

    Args:
        trace: the script.
        plans: what could be rented or used.
        gpus: the catalog entries of their GPUs.
        job: says how the script scales and divides its model; None holds the batch per GPU unless the
            trace shows otherwise.
        corrections: by GPU, what earlier runs say; None without any.

    Raises:
        InputError: an argument of another kind, or a plan with a GPU that the catalog lacks.
        CatalogError: constants or networks of the predictor are missing or broken.
    """
    check_kind("trace", trace, Trace, "profile() makes one, trace_io.read_trace() reads one")
    plans = list(plans) if isinstance(plans, Iterator) else plans
    check_each("plans", plans, Plan, "plans_of_offers() and plans_of_machine() make them")
    check_gpus(plans, gpus)
    known = corrections or {}
    job = job or Job()
    steps = steps_of(trace, job)
    layouts: dict[str, dict[Layout, None]] = {}
    for plan in plans:
        layouts.setdefault(plan.gpu, {})[plan.layout] = None
    return {
        (name, estimate.layout): estimate
        for name, wanted in layouts.items()
        for estimate in predict_counts(
            trace,
            gpus[name],
            list(wanted),
            share_of=steps.share,
            correction=known.get(name),
            split=job.split,
        )
    }


def estimating(
    trace: Trace,
    gpus: Mapping[str, GpuSpec],
    job: Job,
    *,
    corrections: Mapping[str, Correction] | None = None,
) -> Callable[[str, Layout], IterationEstimate]:
    """The same one by one, each made when it is first asked for, of plans that suit the trace."""
    share_of, known = steps_of(trace, job).share, corrections or {}

    @cache
    def on(gpu: str) -> Callable[[Layout], IterationEstimate]:
        correction = known.get(gpu)
        return prediction_on(trace, gpus[gpu], share_of=share_of, correction=correction, split=job.split)

    return cache(lambda gpu, layout: on(gpu)(layout))


def check_gpus(plans: Iterable[Plan], gpus: Mapping[str, GpuSpec]) -> None:
    """Refuse plans with GPUs of which nothing is known.

    Raises:
        InputError: names them, and near ones.
    """
    check_kind("gpus", gpus, Mapping, "load_gpus() returns all")
    unknown = dict.fromkeys(plan.gpu for plan in plans if plan.gpu not in gpus)
    if unknown:
        hint = did_you_mean(next(iter(unknown)), gpus)
        raise InputError(
            f"gpus has no {', '.join(unknown)}, of which there are plans.{hint} with_known_gpu() leaves such"
            " offers out."
        )
