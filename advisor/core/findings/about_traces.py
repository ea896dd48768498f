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


class NotDone(TraceWarning):
    what: Literal["call", "export", "export-failed", "tracking", "writing", "removal", "download"]
    name: str | None = None


class CompileSeen(TraceWarning):
    how: Literal["ignored", "measured", "breaks"]
    num_breaks: int = 0
    operators: Sequence[str] = ()


class CredentialsInSight(TraceWarning):
    path: str


class DataSetReplaced(TraceWarning):
    name: str
    error: str
    num_samples: int | None


class DataWithoutEnd(TraceWarning):
    num_samples: int
    num_batches: int


class IterationSeen(TraceWarning):
    of: Literal["ended-early", "steps-unequal", "closure-repeated", "first-turn"]
    num: int


class EvaluationSeen(TraceWarning):
    where: Literal["between", "left-out", "rollouts", "cut", "inside"]
    num_passes: int = 0
    num_batches: int | None = None
    num_given: int = 0
    num_calls: int = 0
    num_calls_of_all: int = 0


class FakeData(TraceWarning):
    num_loaders: int = 0


class KernelsLeftOut(TraceWarning):
    which: Literal["unjoined", "unmarked", "exchange"]
    num_kernels: int = 0
    share_of_kernels: float = 0.0
    share_of_time: float = 0.0
    time_s: float = 0.0


class ProfileLacks(TraceWarning):
    what: Literal["dtypes", "shapes", "flags", "recurrent-memory"]


class OperatorUnknown(TraceWarning):
    operator: str
    error: str | None = None


class NoStep(TraceWarning):
    has_updates: bool


class OffloadUncounted(TraceWarning):
    parts: Sequence[str]


class OptimizerIdle(TraceWarning):
    optimizers: Sequence[str]
    num_steps: int


class ProfiledWithoutGpu(TraceWarning):
    reason: str


class SamplerWithoutLength(TraceWarning):
    num_iterations: int


class SeveralLoaders(TraceWarning):
    num_batches: int | None
    others: Sequence[int | None]


class SizesAssumed(TraceWarning):
    assumptions: Sequence[str]


class StepsDiffer(TraceWarning):
    num_steps: int
    lightest: float
    heaviest: float


class StepTaken(TraceWarning):
    step: str
    num_steps: int


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
