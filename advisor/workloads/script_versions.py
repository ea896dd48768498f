"""Versions of a script, each with its trace, and their workloads on the machines of plans.

The script as it is written, the script with one change made to it (``advisor.predict.what_if``), and the
script with its model divided among GPUs (``advisor.predict.split``).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from advisor.core import values
from advisor.core.errors import InputError, did_you_mean
from advisor.core.findings import Finding, about_estimates, about_options
from advisor.predict.batch_share import batch_share, trace_at
from advisor.predict.exchange.collectives import is_known_at, sharded_over
from advisor.predict.interval import Correction, widened
from advisor.predict.iteration import predict_counts, prediction_on
from advisor.predict.split import why_undivided
from advisor.predict.what_if.script_changes import CHANGES, ONE_LINE, TraceChange
from advisor.workloads.cpu import CPU, CpuSteps
from advisor.workloads.step_counts import Length, length_of

Predicting = Callable[[str, Sequence[values.Layout]], Sequence[values.IterationEstimate]]

_POWERS = (1, 2, 4, 8, 16)
# What takes fewer changes of a script comes first; the others are tried where it is not enough.
_SPLITS = (
    tuple(values.Split(sharding=one) for one in values.Sharding if one is not values.Sharding.NONE),
    tuple(values.Split(tensor=tensor, pipeline=stages) for tensor, stages in product(_POWERS, _POWERS))[1:],
)


# What a trace says of a number of GPUs beside times: what fits, what steps rest on, what to change.

# Changes that a reason names; all are in the estimate.
_MOST_REMEDIES = 3


Notes = tuple[values.Trace, values.ScriptWork, tuple[Finding, ...]]
"""The script as one of so many GPUs runs it, what to change in it, and what its steps rest on."""


def _noting(trace: values.Trace, steps: values.Steps, change: tuple[Finding, ...]) -> Callable[[int], Notes]:
    @cache
    def of(num_gpus: int) -> Notes:
        there = trace_at(trace, batch_share(trace, steps.share(num_gpus)))
        sharing, tuning = tuple(_sharing(there, steps, num_gpus)), tuple(_tuning(steps, num_gpus))
        work = values.ScriptWork(change=change, sharing=sharing, tuning=tuning)
        return there, work, tuple(_scaling(num_gpus, there, steps))

    return of


def _memory(estimate: values.IterationEstimate, trace: values.Trace) -> Iterator[Finding]:
    num_gpus = estimate.layout.num_gpus
    num_ranks = sharded_over(trace)
    if num_ranks is not None and not is_known_at(trace, num_gpus):
        # The trace is of a rank that holds a part of the model, and says nothing of so many ranks.
        yield about_options.RemovedBySharding(num_ranks=num_ranks, num_gpus=num_gpus)
    elif estimate.fits_memory is None:
        yield about_options.Unknown(what="memory")
    if estimate.fits_memory is False:
        largest = estimate.largest_batch
        yield about_options.RemovedByMemory(
            needed_bytes=estimate.memory_bytes or 0,
            available_bytes=estimate.memory_limit_bytes,
            fitting_share=None if largest is None else largest.share,
            batch_size=trace.batch_size,
            fitting_batch_size=None if largest is None else largest.likely,
            remedies=[
                {"changes": one.changes, "needed_bytes": round(one.need_bytes.p50), "slower": one.slower.p50}
                for one in estimate.remedies[:_MOST_REMEDIES]
            ],
        )
    elif estimate.memory is not None and estimate.fit is values.Fit.LIKELY:
        yield about_options.MemoryTight(
            of="gpu",
            needed_bytes=estimate.memory_bytes or 0,
            needed_p90_bytes=round(estimate.memory.need_bytes.p90),
            available_bytes=estimate.memory_limit_bytes,
        )


def _scaling(num_gpus: int, trace: values.Trace, steps: values.Steps) -> Iterator[Finding]:
    if num_gpus == steps.num_ranks:
        return
    is_assumed = steps.source is values.ScalingSource.ASSUMED
    if steps.scaling is values.Scaling.STRONG:
        # A batch of fewer samples than GPUs is not held.
        if steps.batches(num_gpus) == steps.num_ranks:
            yield about_options.GlobalBatchHeld(
                source=str(steps.source),
                global_batch_size=steps.global_batch_size(num_gpus),
                batch_size=trace.batch_size,
            )
    elif is_assumed and steps.scaling is values.Scaling.UNSHARED:
        if steps.copies(num_gpus) > 1:
            yield about_options.Unknown(what="sharing")
    elif is_assumed and (steps.batch_size is None or trace.world_size is not None):
        yield about_options.ScalingAssumed(batch_size=steps.batch_size, num_gpus=num_gpus)


def _sharing(trace: values.Trace, steps: values.Steps, num_gpus: int) -> Iterator[Finding]:
    """How several GPUs come to share the model, or the data of a script not seen to use more than one."""
    if num_gpus == 1:
        return
    if not steps.split.is_none:
        yield from _division(steps.split)
    # A script that made a group elsewhere does so under torchrun.
    elif trace.collectives or trace.work_elsewhere is not None:
        return
    elif steps.scaling is not values.Scaling.UNSHARED:
        yield from _data_parallel(trace)


def _data_parallel(trace: values.Trace) -> Iterator[Finding]:
    if trace.parallel_by is not None:
        yield about_estimates.StartWithTorchrun(library=trace.parallel_by)
        return
    yield about_estimates.EditScript(what="wrap-in-ddp")
    if trace.has_sparse_gradients:
        yield about_estimates.EditScript(what="gather-sparse-gradients")
    if trace.accumulation > 1:
        yield about_estimates.EditScript(what="use-no-sync")


def _division(split: values.Split) -> Iterator[Finding]:
    """How the model is to be divided, which no script is seen to do by itself."""
    if split.sharding is not values.Sharding.NONE:
        yield about_estimates.ShardModel(sharding=str(split.sharding))
    if split.divides_layers:
        yield about_estimates.DivideLayers(tensor=split.tensor, pipeline=split.pipeline)


def _tuning(steps: values.Steps, num_gpus: int) -> Iterator[Finding]:
    batch_size, profiled = (steps.global_batch_size(count) for count in (num_gpus, steps.num_ranks))
    if batch_size is not None and profiled is not None and batch_size != profiled:
        yield about_estimates.RetuneLearningRate(global_batch_size=batch_size, batch_size=profiled)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Version:
    """One version of a script."""

    variant: values.Variant
    """What tells it from the script as written."""
    script: values.Script
    """What is known of it whichever machine runs it."""
    split: values.Split
    """How its model is divided."""
    gpus: Mapping[str, values.GpuSpec]
    _length: Length
    _notes: Callable[[int], Notes]
    """On so many GPUs."""
    _predicted: Predicting

    def workloads(self, plans: Iterable[values.Plan]) -> list[values.Workload]:
        """One for each GPU and layout of these plans.

        Raises:
            InputError: the length of the job is unknown, the trace has no operators, the model cannot be
                divided as the job says, or a plan has a GPU of which nothing is known.
            CatalogError: constants or networks of the predictor are missing or broken.
        """
        plans = list(plans) if isinstance(plans, Iterator) else plans
        check_gpus(plans, self.gpus)
        layouts: dict[str, dict[values.Layout, None]] = {}
        for plan in plans:
            layouts.setdefault(plan.gpu, {})[plan.layout] = None
        for num_gpus in {layout.num_gpus for of_gpu in layouts.values() for layout in of_gpu}:
            self._length.whole(num_gpus)  # what is wrong with it shows before anything is predicted
        return [
            self.workload(self.gpus[gpu], estimate)
            for gpu, of_gpu in layouts.items()
            for estimate in self._predicted(gpu, list(of_gpu))
        ]

    def workload(self, gpu: values.GpuSpec, estimate: values.IterationEstimate) -> values.Workload:
        """The workload with this estimate, of a GPU of any catalog."""
        num_gpus = estimate.layout.num_gpus
        there, script_work, scaling_notes = self._notes(num_gpus)
        return values.Workload(
            script=self.script,
            variant=self.variant,
            gpu=gpu,
            estimate=estimate,
            iterations=self._length.whole(num_gpus),
            iterations_per_epoch=self._length.per_epoch(num_gpus),
            share=self._length.steps.share(num_gpus),
            script_work=script_work,
            memory_notes=() if gpu.name == CPU else tuple(_memory(estimate, there)),
            scaling_notes=scaling_notes,
        )


def as_written(
    trace: values.Trace,
    gpus: Mapping[str, values.GpuSpec],
    job: values.Job,
    corrections: Mapping[str, Correction] | None = None,
    cpu: CpuSteps | None = None,
) -> Version:
    """The script as it is.

    Args:
        gpus: the catalog entries of the GPUs that plans may have.
        job: says how long it trains, and how the script scales and divides its model.
        corrections: by GPU, what earlier runs say; None without any.

    Raises InputError: an argument of another kind.
    """
    length, known = length_of(trace, job), corrections or {}

    def predicted(gpu: str, layouts: Sequence[values.Layout]) -> Sequence[values.IterationEstimate]:
        if cpu is not None and gpu == CPU:
            return [cpu.estimate(trace, layout) for layout in layouts]
        return predict_counts(
            trace, gpus[gpu], layouts, share_of=length.steps.share, correction=known.get(gpu), split=job.split
        )

    return _version(values.AS_WRITTEN, trace, gpus, job, length, predicted)


def changed(
    name: str,
    trace: values.Trace,
    gpus: Mapping[str, values.GpuSpec],
    job: values.Job,
    corrections: Mapping[str, Correction] | None = None,
) -> Version | values.Variant:
    """The script with the change of this name; a variant without workloads where it does not apply."""
    change = CHANGES[name](trace)
    if isinstance(change, Finding):
        return values.Variant(name=name, why_not=change)
    # So many fewer steps of more samples take as many samples in all.
    steps = {name: getattr(job, name) for name in ("iterations", "iterations_per_epoch")}
    fewer = {name: math.ceil(count / change.samples) for name, count in steps.items() if count is not None}
    job = replace(job, **fewer)
    length, known = length_of(change.trace, job), corrections or {}

    @cache
    def on(gpu: str) -> Callable[[values.Layout], values.IterationEstimate]:
        return cache(
            prediction_on(
                change.trace,
                gpus[gpu],
                share_of=length.steps.share,
                correction=known.get(gpu),
                split=job.split,
            )
        )

    def predicted(gpu: str, layouts: Sequence[values.Layout]) -> Sequence[values.IterationEstimate]:
        return [_unsure(on(gpu)(layout), change) for layout in layouts]

    whys = {name: why for name, spec in gpus.items() if (why := change.why_not_on(spec)) is not None}
    variant = values.Variant(
        name=change.name,
        why_not_on=whys,
        why_not_fed=change.why_not_fed,
        samples=change.samples,
        new_kernels=change.new_kernels,
        sigma=change.sigma,
    )
    return _version(variant, change.trace, gpus, job, length, predicted, change.steps)


def divided(
    trace: values.Trace,
    gpus: Mapping[str, values.GpuSpec],
    job: values.Job,
    corrections: Mapping[str, Correction] | None = None,
) -> Iterator[tuple[Version, ...]]:
    """The script with its model divided, in every way that it can be: first what takes fewer changes of it.

    There is none for a script that divides its model itself. Arguments are those of ``as_written``.
    """
    if sharded_over(trace) is not None:
        return
    for splits in _SPLITS:
        yield tuple(
            replace(
                as_written(trace, gpus, replace(job, split=split), corrections),
                variant=values.Variant(name=split.name),
            )
            for split in splits
            if why_undivided(trace, split) is None
        )


def check_gpus(plans: Iterable[values.Plan], gpus: Mapping[str, values.GpuSpec]) -> None:
    """Refuse plans with GPUs of which nothing is known. Raises InputError: names them, and near ones."""
    unknown = dict.fromkeys(plan.gpu for plan in plans if plan.gpu not in gpus)
    if unknown:
        hint = did_you_mean(next(iter(unknown)), gpus)
        raise InputError(
            f"gpus has no {', '.join(unknown)}, of which there are plans.{hint} with_known_gpu() leaves such"
            " offers out."
        )


def _version(
    variant: values.Variant, trace: values.Trace, gpus: Mapping[str, values.GpuSpec], job: values.Job,
    length: Length, predicted: Predicting, change: tuple[Finding, ...] = (),
) -> Version:  # fmt: skip
    script = values.Script(
        name=trace.script,
        arguments=trace.arguments,
        origin_gpu=trace.origin_gpu,
        batch_size=trace.batch_size,
        steps=length.steps,
        iterations_per_epoch=length.as_profiled(),
        warnings=trace.warnings,
        checkpoints=_checkpoints(trace, job),
        is_checkpoint_use_given=job.checkpoints is not None,
    )
    return Version(
        variant=variant,
        script=script,
        split=job.split,
        gpus=gpus,
        _length=length,
        _notes=_noting(trace, length.steps, change),
        _predicted=predicted,
    )


def _checkpoints(trace: values.Trace, job: values.Job) -> values.Checkpoints | None:
    """As the user says, else as the script's text shows, with the lines that show it."""
    if job.checkpoints is None:
        return trace.checkpoints
    return replace(trace.checkpoints or values.Checkpoints(use=job.checkpoints), use=job.checkpoints)


def _unsure(estimate: values.IterationEstimate, change: TraceChange) -> values.IterationEstimate:
    sigma = 0.0 if change.is_in_estimate else change.sigma
    return replace(
        estimate,
        device_s=widened(estimate.device_s, sigma),
        iteration_s=widened(estimate.iteration_s, sigma),
        assumptions=(change.assumption, *estimate.assumptions),
    )


__all__ = ["CHANGES", "ONE_LINE", "Version", "as_written", "changed", "divided"]
