"""What plans share: the work of as many GPUs, and how long machines that are alike take for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from advisor.core.values import Interval, IterationEstimate, Job, Layout, Plan, Trace
from advisor.predict.batch_share import batch_share, trace_at
from advisor.predict.loading import fed, reading
from recommender.outcome.draws import Array, Draws
from recommender.outcome.outcomes import work_of
from recommender.outcome.reading import read_s
from recommender.outcome.steps import Steps, iterations_per_epoch, num_iterations, steps_of
from recommender.outcome.vcpus import vcpus_per_gpu

EstimateKey = tuple[str, Layout]
"""Name of a GPU, and how many of them exchange over what."""

Machine = tuple[str, Layout, float, Interval | None]
"""The same, with the vCPUs for each GPU, and the seconds to read what an iteration takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a number of GPUs has to do.

    Attributes:
        trace: the script as one of them runs it.
    """

    trace: Trace
    iterations: int
    per_epoch: int | None
    steps: Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What plans share, each worked out when it is first asked for.

    Attributes:
        work: of so many GPUs.
        machine: of a plan; equal ones train alike.
        estimate: of a machine, fed by its vCPUs and by what holds the data.
        work_s: its draws [n] of the training.
    """

    work: Callable[[int], Work]
    machine: Callable[[Plan], Machine]
    estimate: Callable[[str, Layout, float, Interval | None], IterationEstimate]
    work_s: Callable[[str, Layout, float, Interval | None], Array]


def known_of(
    estimates: Mapping[EstimateKey, IterationEstimate], trace: Trace, job: Job, draws: Draws
) -> Known:
    """Of plans with these estimates; none is worked out yet.

    Args:
        estimates: of each GPU and layout that a plan may have.
        trace: the script as one GPU was profiled with it.
        job: what is to be trained.
        draws: of luck and ignorance, n of each.

    Raises:
        InputError: by its ``work``: the number of iterations is unknown.
    """
    steps = steps_of(trace, job)

    @cache
    def work(num_gpus: int) -> Work:
        return Work(
            trace=trace_at(trace, batch_share(trace, steps.share(num_gpus))),
            iterations=num_iterations(trace, job, num_gpus),
            per_epoch=iterations_per_epoch(trace, job, num_gpus),
            steps=steps,
        )

    def machine(plan: Plan) -> Machine:
        return plan.gpu, plan.layout, vcpus_per_gpu(plan), read_s(plan, work(plan.num_gpus).per_epoch)

    @cache
    def estimate(gpu: str, layout: Layout, vcpus: float, each_s: Interval | None) -> IterationEstimate:
        there = fed(estimates[gpu, layout], vcpus)
        return there if each_s is None else reading(there, each_s)

    @cache
    def work_s(gpu: str, layout: Layout, vcpus: float, each_s: Interval | None) -> Array:
        return work_of(estimate(gpu, layout, vcpus, each_s), work(layout.num_gpus).iterations, draws)

    return Known(work=work, machine=machine, estimate=estimate, work_s=work_s)
