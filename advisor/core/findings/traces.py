"""What is found of a trace: how the script ran, and what its data or a profiler's export does not show."""

from __future__ import annotations

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


class ClosureRepeated(TraceWarning):
    num_evaluations: int


class CompileIgnored(TraceWarning): ...


class CompileMeasured(TraceWarning): ...


class CredentialsInSight(TraceWarning):
    path: str


class DataSetReplaced(TraceWarning):
    name: str
    error: str
    num_samples: int | None


class DataWithoutEnd(TraceWarning):
    num_samples: int
    num_batches: int


class EndedEarly(TraceWarning):
    num_iterations: int


class EvaluationBetween(TraceWarning):
    num_passes: int


class EvaluationCut(TraceWarning):
    num_given: int
    num_batches: int | None


class EvaluationInside(TraceWarning):
    num_passes: int
    num_calls: int
    num_calls_of_all: int


class EvaluationLeftOut(TraceWarning):
    num_batches: int


class ExchangeLeftOut(TraceWarning):
    num_kernels: int
    time_s: float


class FakeDataFed(TraceWarning):
    num_loaders: int


class FakeDataUnused(TraceWarning): ...


class GraphBreaks(TraceWarning):
    num_breaks: int
    operators: Sequence[str]


class KernelsUnjoined(TraceWarning):
    share_of_kernels: float
    share_of_time: float


class KernelsUnmarked(TraceWarning):
    num_kernels: int
    share_of_time: float


class ProfileLacks(TraceWarning):
    what: Literal["dtypes", "shapes", "flags", "recurrent-memory"]


class NoFlopFormula(TraceWarning):
    operator: str


class NoShapeRule(TraceWarning):
    operator: str
    error: str


class NoStep(TraceWarning):
    has_updates: bool


class OffloadUncounted(TraceWarning):
    parts: Sequence[str]


class OptimizerIdle(TraceWarning):
    optimizers: Sequence[str]
    num_steps: int


class ProfiledWithoutGpu(TraceWarning):
    reason: str


class RolloutsLeftOut(TraceWarning):
    num_passes: int


class SamplerWithoutLength(TraceWarning):
    num_iterations: int


class SeveralLoaders(TraceWarning):
    num_batches: int | None
    others: Sequence[int | None]


class SizesAssumed(TraceWarning):
    assumptions: Sequence[str]


class StepsUnequal(TraceWarning):
    most_steps: int


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
