"""How many optimizer steps a job takes on a number of GPUs, and what each GPU takes of a step.

Under weak scaling each GPU takes the batch that was profiled, so that more GPUs take fewer, larger steps.
Under strong scaling the script holds the batch of all GPUs together: the steps stay, and each GPU takes less.
Which of the two a script does shows where it was profiled in worlds of two sizes. A script without a
DataLoader may train on all of its data in each step, as on a full graph: then no GPU can take a part of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from advisor.core.errors import InputError
from advisor.core.findings import Code, finding
from advisor.core.limits import MAX_ITERATIONS
from advisor.core.values import WHOLE, Job, Scaling, Split, Trace

# Batches that do not divide are rounded, and batches of sentences differ.
_TOLERANCE = math.log(1.25)


class Source(StrEnum):
    """Who says how a script scales."""

    GIVEN = "given"
    SEEN = "seen"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What a step of the job is.

    Attributes:
        num_ranks: GPUs of the profiled world.
        batch_size: samples a GPU takes there; None if unknown.
        split: how the model is divided: the GPUs of a copy take one batch together.
    """

    scaling: Scaling
    source: Source
    num_ranks: int
    batch_size: int | None
    split: Split = WHOLE

    def copies(self, num_gpus: int) -> int:
        """Of the model, on so many GPUs."""
        return max(num_gpus // self.split.gpus_per_copy, 1)

    def share(self, num_gpus: int) -> float:
        """What each copy of the model takes of the profiled batch, on so many GPUs."""
        return self.num_ranks / self.copies(num_gpus) if self.scaling is Scaling.STRONG else 1.0

    def global_batch_size(self, num_gpus: int) -> int | None:
        """Samples of a step on so many GPUs."""
        return None if self.batch_size is None else self.batch_size * self.batches(num_gpus)

    def batches(self, num_gpus: int) -> int:
        """Profiled batches that a step takes on so many GPUs."""
        return self.copies(num_gpus) if self.scaling is Scaling.WEAK else self.num_ranks

    def of_batches(self, num_batches: int, num_gpus: int) -> int:
        """Steps that take so many profiled batches on so many GPUs."""
        return math.ceil(num_batches / self.batches(num_gpus))


def steps_of(trace: Trace, job: Job) -> Steps:
    """How the job's script scales: as its user says, else as was seen, else as data parallelism has it.

    Data parallelism holds the batch of each GPU. Where nobody saw batches, none is assumed.
    """
    seen = seen_scaling(trace)
    source = Source.GIVEN if job.scaling else Source.SEEN if seen else Source.ASSUMED
    return Steps(
        scaling=job.scaling or seen or (Scaling.WEAK if _may_share(trace) else Scaling.UNSHARED),
        source=source,
        num_ranks=trace.world_size or 1,
        batch_size=trace.batch_size,
        split=job.split,
    )


def _may_share(trace: Trace) -> bool:
    """Whether anything shows that GPUs take different samples: a DataLoader, a process group, a library."""
    is_distributed = trace.world_size is not None or bool(trace.collectives) or trace.parallel_by is not None
    has_loader = all(warning.code is not Code.NO_DATA_LOADER for warning in trace.warnings)
    return is_distributed or has_loader or trace.batch_size is not None


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


def iterations_per_epoch(trace: Trace, job: Job, num_gpus: int) -> int | None:
    """Optimizer steps of an epoch on ``num_gpus``; None if nobody knows."""
    steps = steps_of(trace, job)
    batches = _batches_of_epoch(trace, job, steps)
    return None if batches is None else steps.of_batches(batches, num_gpus)


def iterations_as_profiled(trace: Trace, job: Job) -> int | None:
    """Optimizer steps of an epoch in the profiled world; None if nobody knows."""
    steps = steps_of(trace, job)
    batches = _batches_of_epoch(trace, job, steps)
    return None if batches is None else math.ceil(batches / steps.num_ranks)


def _batches_of_epoch(trace: Trace, job: Job, steps: Steps) -> int | None:
    """Profiled batches: one GPU takes them one by one, the profiled world a step's at once."""
    if job.iterations_per_epoch is None:
        return trace.iterations_per_epoch
    return job.iterations_per_epoch * steps.num_ranks


def num_iterations(trace: Trace, job: Job, num_gpus: int) -> int:
    """Optimizer steps on ``num_gpus``: as many samples as those asked for take in the profiled world.

    Raises:
        InputError: epochs are asked for and nobody knows how many iterations one has, or they are too many.
    """
    steps = steps_of(trace, job)
    if job.iterations is not None:
        return steps.of_batches(job.iterations * steps.num_ranks, num_gpus)
    per_epoch = iterations_per_epoch(trace, job, num_gpus)
    if per_epoch is None or job.epochs is None:
        raise InputError(
            f"how many iterations an epoch of {trace.script!r} has is unknown: set iterations_per_epoch, or"
            " iterations instead of epochs.",
            finding=finding(
                Code.EPOCH_LENGTH_UNKNOWN,
                script=trace.script,
                is_of_profiler=trace.backend == "kineto",
                has_loader=trace.num_workers is not None,
            ),
        )
    # Rounded first: 100 * 0.07 is 7.000000000000001 in floating point, and 7 iterations all the same.
    iterations = math.ceil(round(per_epoch * job.epochs, 6))
    if iterations > MAX_ITERATIONS:
        raise InputError(
            f"{job.epochs:,g} epochs of {per_epoch:,} iterations are more than {MAX_ITERATIONS:,} iterations:"
            " set fewer epochs, or iterations_per_epoch where the epoch has no real end.",
            finding=finding(
                Code.TOO_MANY_EPOCHS,
                epochs=job.epochs,
                iterations_per_epoch=per_epoch,
                most_iterations=MAX_ITERATIONS,
            ),
        )
    return iterations
