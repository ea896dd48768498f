"""What a trace says of a number of GPUs beside times: what fits, what steps rest on, what to change."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from advisor.core import values
from advisor.core.findings import Finding, about_estimates, about_options
from advisor.predict.batch_share import batch_share, trace_at
from advisor.predict.exchange.collectives import is_known_at, sharded_over

# Changes that a reason names; all are in the estimate.
_MOST_REMEDIES = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noting:
    """What is said of workloads of one script, each worked out once."""

    script_work: Callable[[int], values.ScriptWork]
    """Of so many GPUs."""
    scaling: Callable[[int], tuple[Finding, ...]]
    """Of so many GPUs."""
    memory: Callable[[values.IterationEstimate], tuple[Finding, ...]]
    """Of an estimate."""


def noting(trace: values.Trace, steps: values.Steps, change: tuple[Finding, ...] = ()) -> Noting:
    """The notes on a script."""

    @cache
    def there(num_gpus: int) -> values.Trace:
        """The script as one of so many GPUs runs it."""
        return trace_at(trace, batch_share(trace, steps.share(num_gpus)))

    @cache
    def script_work(num_gpus: int) -> values.ScriptWork:
        return values.ScriptWork(
            change=change,
            sharing=tuple(_sharing(there(num_gpus), steps, num_gpus)),
            tuning=tuple(_tuning(steps, num_gpus)),
        )

    @cache
    def scaling(num_gpus: int) -> tuple[Finding, ...]:
        return tuple(_scaling(num_gpus, there(num_gpus), steps))

    def memory(estimate: values.IterationEstimate) -> tuple[Finding, ...]:
        return tuple(_memory(estimate, there(estimate.layout.num_gpus)))

    return Noting(script_work=script_work, scaling=scaling, memory=memory)


def _memory(estimate: values.IterationEstimate, trace: values.Trace) -> Iterator[Finding]:
    num_gpus = estimate.layout.num_gpus
    num_ranks = sharded_over(trace)
    if num_ranks is not None and not is_known_at(trace, num_gpus):
        # The trace is of a rank that holds a part of the model, and says nothing of so many ranks.
        yield about_options.RemovedBySharding(num_ranks=num_ranks, num_gpus=num_gpus)
    elif estimate.fits_memory is None:
        yield about_options.Unknown(what="memory")
    if estimate.fits_memory is False:
        yield _does_not_fit(estimate, trace)
    elif estimate.memory is not None and estimate.fit is values.Fit.LIKELY:
        yield about_options.MemoryTight(
            needed_bytes=estimate.memory_bytes or 0,
            needed_p90_bytes=round(estimate.memory.need_bytes.p90),
            available_bytes=estimate.memory_limit_bytes,
        )


def _does_not_fit(estimate: values.IterationEstimate, trace: values.Trace) -> Finding:
    largest = estimate.largest_batch
    return about_options.RemovedByMemory(
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


def _scaling(num_gpus: int, trace: values.Trace, steps: values.Steps) -> Iterator[Finding]:
    if num_gpus == steps.num_ranks:
        return
    is_assumed = steps.source is values.ScalingSource.ASSUMED
    if steps.scaling is values.Scaling.STRONG:
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
