"""How many optimizer steps a job takes on a number of GPUs, and what each GPU takes of a step.

Under weak scaling each GPU takes the batch that was profiled, so that more GPUs take fewer, larger steps.
Under strong scaling the script holds the batch of all GPUs together: the steps stay, and each GPU takes less.
Which of the two a script does shows where it was profiled in worlds of two sizes. A script without a
DataLoader may train on all of its data in each step, as on a full graph: then no GPU can take a part of it.
"""

import math
from dataclasses import dataclass

from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.about_answers import EpochLengthUnknown, TooManyEpochs
from advisor.core.findings.about_traces import LengthUnknown
from advisor.core.limits import MAX_ITERATIONS
from advisor.core.values import Job, Scaling, ScalingSource, Steps, Trace

# Batches that do not divide are rounded, and batches of sentences differ.
_TOLERANCE = math.log(1.25)


def steps_of(trace: Trace, job: Job) -> Steps:
    """How the job's script scales: as its user says, else as was seen, else as data parallelism has it.

    Data parallelism holds the batch of each GPU. Where no batch was seen, none is assumed.
    """
    seen = seen_scaling(trace)
    source = ScalingSource.GIVEN if job.scaling else ScalingSource.SEEN if seen else ScalingSource.ASSUMED
    # What shows that GPUs take different samples: a process group, a library, a DataLoader.
    is_distributed = trace.world_size is not None or bool(trace.collectives) or trace.parallel_by is not None
    may_share = is_distributed or _has_loader(trace) or trace.batch_size is not None
    return Steps(
        scaling=job.scaling or seen or (Scaling.WEAK if may_share else Scaling.UNSHARED),
        source=source,
        num_ranks=trace.world_size or 1,
        batch_size=trace.batch_size,
        split=job.split,
    )


def _has_loader(trace: Trace) -> bool:
    return all(
        not (isinstance(warning, LengthUnknown) and warning.why == "no-loader") for warning in trace.warnings
    )


def seen_scaling(trace: Trace) -> Scaling | None:
    """What two worlds show: samples of a rank, or its FLOPs where those are unknown; None if neither fits."""
    other = trace.work_elsewhere
    if other is None:
        return None
    is_counted = trace.batch_size is not None and other.batch_size is not None
    mine, theirs = (trace.batch_size, other.batch_size) if is_counted else (trace.flops, other.flops)
    if not mine or not theirs:
        return None
    ratio = math.log(mine / theirs)
    off = {
        Scaling.WEAK: abs(ratio),
        Scaling.STRONG: abs(ratio - math.log(other.world_size / (trace.world_size or 1))),
    }
    nearest = min(off, key=lambda scaling: off[scaling])
    return nearest if off[nearest] <= _TOLERANCE else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How many steps a job takes on a number of GPUs."""

    script: str
    job: Job
    steps: Steps
    batches: int | None
    """Profiled ones of an epoch; None if unknown."""
    unknown: Finding

    def per_epoch(self, num_gpus: int) -> int | None:
        """Optimizer steps of an epoch; None if unknown."""
        return None if self.batches is None else self._steps(self.batches, num_gpus)

    def as_profiled(self) -> int | None:
        """Optimizer steps of an epoch in the profiled world; None if unknown."""
        return None if self.batches is None else math.ceil(self.batches / self.steps.num_ranks)

    def whole(self, num_gpus: int) -> int:
        """Optimizer steps of the job: as many samples as those asked for take in the profiled world.

        Raises:
            InputError: epochs are asked for and how many iterations one has is unknown, or they are too many.
        """
        if self.job.iterations is not None:
            return self._steps(self.job.iterations * self.steps.num_ranks, num_gpus)
        per_epoch = self.per_epoch(num_gpus)
        if per_epoch is None or self.job.epochs is None:
            raise InputError(
                f"how many iterations an epoch of {self.script!r} has is unknown: set iterations_per_epoch,"
                " or iterations instead of epochs.",
                finding=self.unknown,
            )
        # Rounded first: 100 * 0.07 is 7.000000000000001 in floating point, and 7 iterations all the same.
        iterations = math.ceil(round(per_epoch * self.job.epochs, 6))
        if iterations > MAX_ITERATIONS:
            epochs = self.job.epochs
            raise InputError(
                f"{epochs:,g} epochs of {per_epoch:,} iterations are more than {MAX_ITERATIONS:,} iterations:"
                " set fewer epochs, or iterations_per_epoch where the epoch has no real end.",
                finding=TooManyEpochs(
                    epochs=epochs, iterations_per_epoch=per_epoch, most_iterations=MAX_ITERATIONS
                ),
            )
        return iterations

    def _steps(self, num_batches: int, num_gpus: int) -> int:
        return math.ceil(num_batches / self.steps.batches(num_gpus))


def length_of(trace: Trace, job: Job) -> Length:
    """The length of a job with this script.

    One GPU takes the profiled batches of an epoch one by one, the profiled world those of a step at once.
    """
    steps = steps_of(trace, job)
    return Length(
        script=trace.script,
        job=job,
        steps=steps,
        batches=job.iterations_per_epoch * steps.num_ranks
        if job.iterations_per_epoch is not None
        else trace.iterations_per_epoch,
        unknown=EpochLengthUnknown(
            script=trace.script,
            is_of_profiler=trace.backend == "kineto",
            has_loader=trace.num_workers is not None and _has_loader(trace),
        ),
    )
