"""What a choice of machines needs to know of a script: nothing behind these values reads a trace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cache

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import EditScript
from advisor.core.values.estimate import WHOLE, IterationEstimate, Layout, Split
from advisor.core.values.gpu import GpuSpec
from advisor.core.values.trace import Checkpoints


class Scaling(StrEnum):
    """What a script holds when GPUs are added."""

    WEAK = "weak"  # the batch of one GPU: steps grow larger and fewer
    STRONG = "strong"  # the batch of all of them: each GPU takes less of it
    UNSHARED = "unshared"  # the whole step: no GPU takes a part of it, so more of them bring nothing


class ScalingSource(StrEnum):
    """What says how a script scales."""

    GIVEN = "given"
    SEEN = "seen"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What an optimizer step of the job is on a number of GPUs."""

    scaling: Scaling
    source: ScalingSource
    num_ranks: int
    """GPUs of the profiled world."""
    batch_size: int | None
    """Samples a GPU takes there; None if unknown."""
    split: Split = WHOLE
    """How the model is divided: the GPUs of a copy take one batch together."""

    def copies(self, num_gpus: int) -> int:
        """Copies of the model on so many GPUs."""
        return max(num_gpus // self.split.gpus_per_copy, 1)

    def share(self, num_gpus: int) -> float:
        """What each copy of the model takes of the profiled batch, on so many GPUs: a sample at least."""
        if self.scaling is not Scaling.STRONG:
            return 1.0
        return float(self.batches(num_gpus) / self.copies(num_gpus))

    def global_batch_size(self, num_gpus: int) -> int | None:
        """Samples of a step on so many GPUs; None if unknown."""
        return None if self.batch_size is None else int(self.batch_size * self.batches(num_gpus))

    def batches(self, num_gpus: int) -> Fraction:
        """Profiled batches that a step takes on so many GPUs."""
        copies, profiled = self.copies(num_gpus), Fraction(self.num_ranks)
        if self.scaling is Scaling.WEAK:
            return Fraction(copies)
        if self.scaling is Scaling.STRONG and self.batch_size:
            # Fewer samples than copies cannot be divided: each takes one.
            return max(profiled, Fraction(copies, self.batch_size))
        return profiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is known of a script whichever machine runs it: its trace without the operators."""

    name: str
    """Its file, as the trace names it."""
    arguments: tuple[str, ...]
    origin_gpu: str | None
    batch_size: int | None
    """Samples a GPU takes in a step where it was profiled; None if unknown."""
    steps: Steps
    """How its steps change with the number of GPUs."""
    iterations_per_epoch: int | None
    """Optimizer steps of an epoch in the profiled world; None if unknown."""
    warnings: tuple[Finding, ...]
    """What profiling warned of."""
    checkpoints: Checkpoints | None = None
    """What it does with them; None where unknown, which counts as that it resumes."""
    is_checkpoint_use_given: bool = False
    """The user said what it does; otherwise its text was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The script as it is written, with one change made to it, or with its model divided."""

    name: str | None = None
    """Of the change or division, which ends the ids of its options; None for the script as written."""
    why_not: Finding | None = None
    """Why the change does not apply to this script; such a variant has no workloads."""
    why_not_on: Mapping[str, Finding] = field(default_factory=dict)
    """By GPU, why that one gains nothing from the change."""
    why_not_fed: Finding | None = None
    """Why an iteration that does not wait for its samples gains nothing; None where it may."""
    samples: int = 1
    """Of a step, over those of the script as written."""
    new_kernels: frozenset[str] = frozenset()
    """Words of the families that run by other kernels than before; times of the others are wrong as they
    were."""
    sigma: float = 0.0
    """Log-normal, of a time that was not profiled."""


AS_WRITTEN = Variant()


class Work(StrEnum):
    """Work on a script or its environment before a plan can run it: more than a line."""

    DDP = "ddp"
    FSDP = "fsdp"
    MODEL_PARALLEL = "model-parallel"
    CHECKPOINTS = "checkpoints"
    LEARNING_RATE = "learning-rate"
    NODES = "nodes"
    SOFTWARE = "software"
    SCRIPT = "script"


# By the code of a change, or by what an edit of the script is.
_WORK_OF = {
    "accumulate": Work.SCRIPT,
    "add-checkpoints": Work.CHECKPOINTS,
    "divide-layers": Work.MODEL_PARALLEL,
    "gather-sparse-gradients": Work.DDP,
    "install-aarch64": Work.SOFTWARE,
    "install-for-vendor": Work.SOFTWARE,
    "pack-data": Work.SCRIPT,
    "retune-learning-rate": Work.LEARNING_RATE,
    "shard-model": Work.FSDP,
    "start-on-nodes": Work.NODES,
    "use-fused-attention": Work.SCRIPT,
    "use-no-sync": Work.DDP,
    "wrap-in-ddp": Work.DDP,
}
# Lines of a script or of its requirements, which take no time to speak of.
_A_LINE = frozenset({
    "add-grad-scaler", "allow-tf32", "compile-model", "enlarge-batch", "fuse-optimizer",
    "install-for-cuda-12",
    "save-checkpoints", "start-with-torchrun", "use-autocast", "use-channels-last", "use-nvme", "use-workers",
})  # fmt: skip


def works_of(changes: Iterable[Finding]) -> tuple[Work, ...]:
    """What changes of a script take, each kind once, in the order of `Work`; what is not known is work."""
    return _works_of(frozenset(one.what if isinstance(one, EditScript) else one.code for one in changes))


@cache
def _works_of(kinds: frozenset[str]) -> tuple[Work, ...]:
    """Of the few sets of changes that thousands of options share."""
    found = {_WORK_OF.get(kind, Work.SCRIPT) for kind in kinds - _A_LINE}
    return tuple(work for work in Work if work in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptWork:
    """What has to be changed in the script before it runs there."""

    change: tuple[Finding, ...] = ()
    """What makes it the variant."""
    sharing: tuple[Finding, ...] = ()
    """How several GPUs come to share the data or the model."""
    tuning: tuple[Finding, ...] = ()
    """What to tune again, such as the learning rate of a larger batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A variant of a script on the GPUs of one layout: all that a choice needs to know of it."""

    script: Script
    variant: Variant
    gpu: GpuSpec
    estimate: IterationEstimate
    """Of an iteration that waits for no vCPU beyond its workers and reads in no time; its ``input`` is what
    the samples take."""
    iterations: int
    """Optimizer steps of the whole job."""
    iterations_per_epoch: int | None
    """None if unknown."""
    share: float
    """What each copy of the model takes of the profiled batch."""
    script_work: ScriptWork = ScriptWork()
    """What has to be changed in the script."""
    memory_notes: tuple[Finding, ...] = ()
    """Whether it fits, as far as it can be said."""
    scaling_notes: tuple[Finding, ...] = ()
    """What its steps rest on where more or fewer GPUs were profiled."""

    @property
    def layout(self) -> Layout:
        """How the GPUs are laid out."""
        return self.estimate.layout
