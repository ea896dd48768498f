"""What is found of an estimate: what to change, what it rests on, and why a change brings nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.core.findings import Caution, Change, Finding, Note

# What to change in the script or its environment.


class Accumulate(Change):
    passes: int


class AddGradScaler(Change): ...


class AllowTf32(Change): ...


class CompileModel(Change): ...


class DivideLayers(Change):
    tensor: int
    pipeline: int


class EnlargeBatch(Change):
    factor: int


class FuseOptimizer(Change): ...


class GatherSparseGradients(Change): ...


class InstallAarch64(Change): ...


class InstallForCuda12(Change):
    architecture: str


class InstallForVendor(Change):
    vendor: str


class PackData(Change): ...


class RetuneLearningRate(Change):
    global_batch_size: int
    batch_size: int


class SaveCheckpoints(Change):
    interval_s: float
    best_interval_s: float


class ShardModel(Change):
    sharding: str


class StartOnNodes(Change):
    num_nodes: int
    gpus_per_node: int
    is_rented: bool


class StartWithTorchrun(Change):
    library: str


class UseAutocast(Change):
    dtype: str


class UseChannelsLast(Change): ...


class UseFusedAttention(Change): ...


class UseNoSync(Change): ...


class UseNvme(Change): ...


class UseWorkers(Change): ...


class WrapInDdp(Change): ...


# What an estimate rests on.


class AttentionUnfused(Caution):
    gpu: str
    dtype: str
    head_size: int


class BatchNotProfiled(Note):
    share: float
    batch: float
    exponent: float


class BatchVariation(Note):
    variation: float
    waits: bool


class CorrectedByReceipts(Note):
    num_runs: int
    num_jobs: int
    factor: float
    band: float


class Drift(Caution):
    gpu: str
    num_runs: int
    num_outside: int
    ratio: float


class CalibratedRates(Note):
    reached_share: Mapping[str, float]


class CalibrationOutdated(Caution): ...


class RooflineConstants(Note):
    source: Finding
    rates_by_constant: Mapping[str, Sequence[str]]


class CustomOperators(Caution):
    names: Sequence[str]


class DataParallel(Note):
    bucket_bytes: float
    slowdown: float
    spread: float


class EmulatedRate(Note):
    rate: str


class Fp16OnCudaCores(Note): ...


class GradientsUnknown(Caution): ...


class HostBound(Note): ...


class HostHidden(Note): ...


class KernelFloor(Note):
    kernel_s: float
    operator_s: float


class Launching(Note):
    launching_s: Mapping[str, float]


class LearnedRates(Note): ...


class LearnedElsewhere(Caution): ...


class LoadingNotCounted(Caution): ...


class MemoryByPart(Note):
    fragmentation_p50: float
    fragmentation_p90: float


class MemoryNotCounted(Caution): ...


class NotLearned(Note):
    families: Sequence[str]
    partly: Sequence[str]


class Supposed(Caution):
    split: str


class OtherWorld(Caution):
    num_ranks: int
    num_gpus: int


class PowerLimited(Note):
    limit_w: float
    tdp_w: float
    slowdown: float


class PowerLimitCalibrated(Note):
    limit_w: float
    tdp_w: float


class RecurrentOfUnknownSize(Caution):
    share_of_rate: float


class RecurrentStepwise(Note): ...


class TimeOfUnsupportedGpu(Caution):
    gpu: str
    why: Finding


class Sharded(Note):
    num_ranks: int
    hides: bool


class StateShared(Note):
    num_gpus: int


class StepCompiled(Note):
    mode: str


class WaveResourcesUnknown(Note): ...


class WhatIfAutocast(Note):
    dtype: str


class WhatIfFedFaster(Note): ...


class WhatIfRewritten(Note):
    change: str


class WhatIfTf32(Note): ...


# Why a change of the script brings nothing.


class WhatIfAlready(Note): ...


class WhatIfBatchNotSeen(Note):
    batch_size: int


class WhatIfBatchUnknown(Note): ...


class WhatIfBf16Instead(Note):
    gpu: str


class WhatIfCopied(Note): ...


class WhatIfGraphBreaks(Note):
    num_breaks: int


class WhatIfNoMachine(Note): ...


class WhatIfNoRate(Note):
    gpu: str
    rate: str


class WhatIfNotCopied(Note): ...


class WhatIfNotFeasible(Note):
    gpu: str
    removed_by: Sequence[str]


class WhatIfNotFed(Note): ...


class WhatIfNothing(Note):
    lacking: str


class WhatIfParametersUnknown(Note): ...


# Why a change has no safe place in a script.


class PatchByHand(Note):
    change: str


class PatchFusedNotClipped(Note): ...


class PatchLoopUnclear(Note): ...


class PatchNoModel(Note): ...


class PatchNoOptimizer(Note): ...


class PatchNoTorch(Note): ...


class PatchNotHelpful(Note): ...


class PatchSetAlready(Note):
    name: str


class PatchSharedLine(Note): ...


# Where a fitted constant comes from.


class ConstantAssumed(Note):
    architecture: str | None


class ConstantCalibrated(Note):
    source: str


class ConstantMeasured(Note): ...


class ConstantMedian(Note):
    architecture: str | None
    is_on_slot_power: bool
    slot_power_w: float


class ConstantOfHalfRate(Note): ...


# What makes measured kernels doubtful.


class ClocksDrifted(Caution):
    drift: float


class KernelsDisagree(Caution):
    constant: str
    num_kernels: int
    spread: float
