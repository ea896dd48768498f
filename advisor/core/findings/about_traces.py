"""What is found of a trace: how the script ran, and what its data or a profiler's export does not show."""

from collections.abc import Sequence
from typing import Literal

from advisor.core.findings import TraceWarning

# What to know of a trace: how the script ran, and what its data or a profiler's export does not tell.


class BatchesDiffer(TraceWarning):
    smallest: int
    largest: int
    batch_size: int | None


class BatchesWarmUp(TraceWarning):
    first_size: int
    nominal_size: int
    num_batches: int
    batch_size: int
    factor: int | None


class LengthUnknown(TraceWarning):
    why: Literal["batch-size", "no-length", "no-batch", "no-loader"]


class LengthAssumed(TraceWarning):
    of: Literal["endless", "sampler", "several-loaders"]
    num_samples: int = 0
    num_batches: int | None = 0
    num_iterations: int = 0
    others: Sequence[int | None] = ()


class NotDone(TraceWarning):
    what: Literal["call", "export", "export-failed", "tracking", "writing", "removal", "download"]
    name: str | None = None


class CompileSeen(TraceWarning):
    how: Literal["ignored", "measured", "breaks"]
    num_breaks: int = 0
    operators: Sequence[str] = ()


class CredentialsInSight(TraceWarning):
    path: str


class IterationSeen(TraceWarning):
    of: Literal[
        "closure-repeated", "ended-at-once", "ended-early", "first-turn", "median-step", "no-step",
        "optimizer-idle", "steps-unequal", "updates-alone",
    ]  # fmt: skip
    num: int = 0
    names: Sequence[str] = ()


class EvaluationSeen(TraceWarning):
    where: Literal["between", "left-out", "rollouts", "cut", "inside"]
    num_passes: int = 0
    num_batches: int | None = None
    num_given: int = 0
    num_calls: int = 0
    num_calls_of_all: int = 0


class FakeData(TraceWarning):
    num_loaders: int = 0
    data_set: str | None = None
    error: str | None = None
    num_samples: int | None = None


class KernelsLeftOut(TraceWarning):
    which: Literal["unjoined", "unmarked", "exchange"]
    num_kernels: int = 0
    share_of_kernels: float = 0.0
    share_of_time: float = 0.0
    time_s: float = 0.0


class ProfileLacks(TraceWarning):
    what: Literal["dtypes", "flags", "recurrent-memory", "shapes", "values"]
    names: Sequence[str] = ()


class OperatorUnknown(TraceWarning):
    operator: str
    error: str | None = None


class OffloadUncounted(TraceWarning):
    parts: Sequence[str]


class ProfiledWithoutGpu(TraceWarning):
    reason: str


class StepsDiffer(TraceWarning):
    num_steps: int
    lightest: float
    heaviest: float


class TorchUntested(TraceWarning):
    version: str
    tested: str
    is_newer: bool


class VariablesWithheld(TraceWarning):
    names: Sequence[str]


class World(TraceWarning):
    of: Literal["one", "script", "shards", "unused", "data-parallel"]
    num_ranks: int | None = None
    world_size: int | None = None
