"""What is found of an estimate: what to change, what it rests on, and why a change brings nothing."""

from collections.abc import Mapping, Sequence
from typing import Literal

from advisor.core.findings import Caution, Change, Finding, Note

# What to change in the script or its environment.


class EditScript(Change):
    what: Literal[
        "accumulate", "add-grad-scaler", "allow-tf32", "compile-model", "enlarge-batch", "fuse-optimizer",
        "gather-sparse-gradients", "install-aarch64", "install-for-cuda-12", "install-for-vendor",
        "pack-data", "use-autocast", "use-channels-last", "use-fused-attention", "use-no-sync", "use-nvme",
        "use-workers", "wrap-in-ddp",
    ]  # fmt: skip
    name: str | None = None


class DivideLayers(Change):
    tensor: int
    pipeline: int


class RetuneLearningRate(Change):
    global_batch_size: int
    batch_size: int


class SaveCheckpoints(Change):
    interval_s: float
    best_interval_s: float
    assumed_of: str | None


class AddCheckpoints(Change):
    interval_s: float
    best_interval_s: float
    script: str
    saves: bool
    saved_at: str | None


class ShardModel(Change):
    sharding: str


class StartOnNodes(Change):
    num_nodes: int
    gpus_per_node: int
    is_rented: bool


class StartWithTorchrun(Change):
    library: str


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


class RooflineConstants(Note):
    source: Finding
    rates_by_constant: Mapping[str, Sequence[str]]


class DataParallel(Note):
    bucket_bytes: float
    slowdown: float
    spread: float


class HostLaunches(Note):
    of: Literal["bound", "floor", "hidden", "step"]
    kernel_s: float = 0.0
    operator_s: float = 0.0
    launching_s: Mapping[str, float] | None = None


class MemoryByPart(Note):
    fragmentation_p50: float
    fragmentation_p90: float


class NotLearned(Note):
    families: Sequence[str]
    partly: Sequence[str]


class Supposed(Caution):
    split: str


class OtherWorld(Caution):
    num_ranks: int
    num_gpus: int


class PowerLimited(Note):
    limit_w: float | None
    tdp_w: float
    slowdown: float | None


class RecurrentOfUnknownSize(Caution):
    share_of_rate: float


class TimeOfUnsupportedGpu(Caution):
    gpu: str
    why: Finding


class RatesFrom(Note):
    of: Literal["cuda-cores", "emulated", "learned", "step-by-step"]
    rate: str | None = None


class Sharded(Note):
    how: Literal["as-recorded", "hidden", "state"]
    num_gpus: int


class StepCompiled(Note):
    mode: str


class WhatIf(Note):
    how: Literal["autocast", "fed-faster", "rewritten", "tf32"]
    dtype: str | None = None
    change: str | None = None


# Why a change of the script brings nothing.


class NoGain(Note):
    why: Literal[
        "already", "batch-not-seen", "batch-unknown", "bf16-instead", "copied", "graph-breaks",
        "no-machine", "no-rate", "not-copied", "not-feasible", "not-fed", "nothing", "parameters-unknown",
    ]  # fmt: skip
    gpu: str | None = None
    rate: str | None = None
    lacking: str | None = None
    batch_size: int | None = None
    num_breaks: int | None = None
    removed_by: Sequence[str] = ()


# Why a change has no safe place in a script.


class NotPatched(Note):
    why: Literal[
        "by-hand", "fused-not-clipped", "loop-unclear", "no-model", "no-optimizer", "no-torch",
        "not-helpful", "set-already", "shared-line",
    ]  # fmt: skip
    name: str | None = None


# Where a fitted constant comes from.


class Constant(Note):
    of: Literal["assumed", "calibrated", "measured", "median", "half-rate", "shared-lanes"]
    architecture: str | None = None
    source: str | None = None
    is_on_slot_power: bool = False
    slot_power_w: float = 0.0


# What makes measured kernels doubtful.


class KernelsDoubtful(Caution):
    why: Literal["clocks", "disagree"]
    spread: float
    constant: str = ""
    num_kernels: int = 0
