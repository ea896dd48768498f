"""The values that flow through the house, frozen once made; standard library only.

``script -> Trace -> IterationEstimate -> Offer -> Plan -> Option -> Recommendation``. Each stage makes
a new value from the ones before it; no value is filled in later. Units end the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

AttributeValue = bool | int | float | str | None | tuple["AttributeValue", ...]


class Phase(StrEnum):
    """The part of an iteration an operator runs in."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class Method(StrEnum):
    """How a time was found, best first."""

    MEASURED = "measured"
    LEARNED = "learned"
    WAVE = "wave"
    ROOFLINE = "roofline"


class Market(StrEnum):
    """On what terms a machine is rented."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex-start"
    CAPACITY_BLOCK = "capacity-block"
    CALENDAR = "calendar"
    RESERVED = "reserved"
    COMMIT_1Y = "commit-1y"
    COMMIT_3Y = "commit-3y"


class Tier(StrEnum):
    """Whose machine it is."""

    LOCAL = "local"
    CLUSTER = "cluster"
    CLOUD = "cloud"


# --- GPUs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyLimits:
    """What one SM can hold, by compute capability (CUDA programming guide, technical specifications)."""

    max_threads: int
    max_blocks: int
    max_registers: int
    max_registers_per_thread: int
    max_shared_bytes: int
    max_shared_bytes_per_block: int
    reserved_shared_bytes_per_block: int
    register_unit: int
    shared_unit_bytes: int
    warp_allocation_unit: int
    warp_size: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstants:
    """What a GPU reaches of its data sheet, fitted to measurements; data, never code.

    Attributes:
        streaming_fraction: achieved / specified memory bandwidth of large element-wise kernels, 0..1.
        reduction_fraction: the same for softmax and normalisation, which read their input twice.
        gemm_fraction: achieved / peak FLOP rate of large matrix products, by rate (``fp32``, ``tf32``,
            ``fp16``, ``bf16`` ...), 0..1.
        conv_fraction: the same for convolutions; above 1 where Winograd saves multiplications.
        measured: the constants fitted on this very GPU; the others are medians or assumptions.
        origin: where each constant comes from, in words, by dotted name such as ``gemm_fraction.bf16``.
        learned_share: by family of networks, the part of the learned rate that a calibration found.
        is_measured: kernels of this GPU were measured for the constants and networks.
    """

    streaming_fraction: float
    reduction_fraction: float
    gemm_fraction: Mapping[str, float]
    conv_fraction: Mapping[str, float]
    measured: frozenset[str]
    origin: Mapping[str, str]
    learned_share: Mapping[str, float] = field(default_factory=dict)
    is_measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpec:
    """One GPU model, each PCIe / SXM / memory variant its own.

    Attributes:
        memory_bytes: what a process can see, not the marketing figure.
        vector_flops_per_s: dense peak without tensor cores, by dtype (``fp64``, ``fp32``, ``fp16`` ...).
        tensor_flops_per_s: dense peak with tensor cores, by dtype (``tf32``, ``fp16``, ``bf16``, ``fp8``).
        nvlink_bytes_per_s: per direction and GPU, 0 without NVLink.
        pcie_bytes_per_s: per direction.
    """

    name: str
    aliases: tuple[str, ...]
    families: tuple[str, ...]
    vendor: str
    architecture: str
    compute_capability: str
    num_sms: int
    base_clock_hz: float
    boost_clock_hz: float
    memory_bytes: int
    memory_bytes_per_s: float
    l2_bytes: int
    vector_flops_per_s: Mapping[str, float]
    tensor_flops_per_s: Mapping[str, float]
    occupancy: OccupancyLimits | None
    tdp_w: float
    nvlink_bytes_per_s: float
    pcie_bytes_per_s: float
    source_url: str
    source_date: date


# --- What the script does --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape and dtype of a tensor; ``stride`` in elements (0 where a dimension is expanded)."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One GPU kernel as a profiler saw it; None where it did not say."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers_per_thread: int | None
    shared_bytes: int | None
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An operator of one iteration; ``count`` equal calls are one entry.

    Attributes:
        flops: floating-point operations of one call (a multiply-add is two).
        bytes: bytes one call reads and writes in device memory.
        measured_s: device time of one call on the trace's origin GPU, None if not measured.
    """

    name: str
    phase: Phase
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attributes: Mapping[str, AttributeValue]
    flops: int
    bytes: int
    count: int
    measured_s: float | None = None
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Which shortcuts the script allows: autocast's dtype and where TF32 may replace FP32."""

    amp_dtype: str | None
    tf32_matmul: bool
    tf32_cudnn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Device memory of the steady state, as the allocator would count it (512-byte blocks).

    A profiler's trace tells the gradients at most; what it leaves out is None.
    """

    parameter_bytes: int | None
    gradient_bytes: int | None
    optimizer_bytes: int | None
    activation_bytes: int | None
    peak_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One communication the script does per iteration, such as the all-reduce of a DDP bucket.

    A profiler's trace tells that there is one, not how large it is.

    Attributes:
        num_bytes: of the whole: what a gather gives, a scatter takes, a reduction works on.
        world_size: processes of its group, which may be a part of all.
    """

    kind: str
    num_bytes: int | None
    world_size: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One steady iteration (one optimizer step) of a training script, and what an epoch holds.

    Attributes:
        batch_size: samples one GPU processes per iteration, accumulation included; None if unknown.
        samples_per_epoch: None if the script's data has no length.
        iterations_per_epoch: optimizer steps per epoch on one GPU; None if unknown.
        accumulation: forward-backward passes per optimizer step.
        iteration_s: measured without a profiler beside it, None from a fake backend.
        data_loading_s: seconds of CPU work to load one iteration's samples in one process.
        num_workers: data-loading processes the script asks for.
        world_size: processes of which the traced one was rank 0; None where the script made no group.
        is_sharded: the traced process was seen to hold a part of each of some parameters.
    """

    schema_version: int
    script: str
    arguments: tuple[str, ...]
    backend: str
    origin_gpu: str | None
    versions: Mapping[str, str]
    precision: Precision
    batch_size: int | None
    samples_per_epoch: int | None
    iterations_per_epoch: int | None
    accumulation: int
    ops: tuple[Op, ...]
    iteration_s: float | None
    data_loading_s: float | None
    num_workers: int | None
    memory: MemoryUse
    collectives: tuple[Collective, ...]
    warnings: tuple[str, ...]
    world_size: int | None = None
    is_sharded: bool = False

    def _repr_html_(self) -> str:
        """A table in a notebook; the renderer is imported when one asks."""
        from advisor.report.html import trace_html

        return trace_html(self)


# --- What it would take elsewhere ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Quantiles of an uncertain quantity; the unit is in the name of the field that holds it."""

    p10: float
    p50: float
    p90: float

    def __post_init__(self) -> None:
        assert self.p10 <= self.p50 <= self.p90, self


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Median and 90 % quantile."""

    p50: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationEstimate:
    """Time and memory of one iteration on ``num_gpus`` GPUs of one node.

    Attributes:
        by_family: seconds of one GPU by operator family; they add up to the computation's p50.
        by_method: the same seconds by the method that found them.
        by_operator: the same seconds by operator and method, such as ``"addmm (wave)"``, largest first.
        communication_s: gradient exchange that does not hide behind the backward pass.
        loading_s: how long each iteration waits for its data, part of ``by_family``.
        memory_bytes: what one GPU must hold, context and fragmentation included; None if unknown.
        assumptions: in words, what the estimate rests on.
    """

    gpu: str
    num_gpus: int
    iteration_s: Interval
    by_family: Mapping[str, float]
    by_method: Mapping[Method, float]
    by_operator: Mapping[str, float]
    communication_s: float
    loading_s: float
    memory_bytes: int | None
    memory_limit_bytes: int
    assumptions: tuple[str, ...]

    @property
    def fits_memory(self) -> bool | None:
        """Whether one GPU can hold its share; None where the need is unknown."""
        return None if self.memory_bytes is None else self.memory_bytes <= self.memory_limit_bytes


# --- What it costs ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine for rent at a dated price.

    List, contracted and effective price are FOCUS terms (https://focus.finops.org).

    Attributes:
        zone: an AWS zone ID (``use1-az4``), since zone names differ by account; None for the whole region.
        gpu: name in our catalog, or the provider's own where the catalog lacks it.
        list_usd_per_h: the provider's published price of the whole machine.
        contracted_usd_per_h: after negotiated discounts, None without any.
        effective_usd_per_h: after commitments and savings plans as well, None without any.
        spot_usd_per_h: quantiles of recent spot prices, None if no history is at hand.
        includes: what the price covers besides GPUs, in words.
        minimum_billed_s: least time billed, however short the run.
        billed_step_s: time is billed in whole multiples of it.
        num_vcpus: of the whole machine, None if unknown.
        retrieved_at: when the price was true, with a time zone; midnight UTC where only the day is known.
    """

    provider: str
    instance_type: str
    region: str
    zone: str | None
    gpu: str
    num_gpus: int
    market: Market
    list_usd_per_h: float
    contracted_usd_per_h: float | None = None
    effective_usd_per_h: float | None = None
    spot_usd_per_h: Interval | None = None
    includes: tuple[str, ...] = ()
    minimum_billed_s: float = 60.0
    billed_step_s: float = 1.0
    num_vcpus: int | None = None
    retrieved_at: datetime
    source: str

    @property
    def usd_per_h(self) -> float:
        """What is paid: the effective price where there is one, else the contracted, else the list price."""
        prices = (self.effective_usd_per_h, self.contracted_usd_per_h, self.list_usd_per_h)
        return next(price for price in prices if price is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """What a machine cost from a moment on.

    Attributes:
        zone: as in ``Offer``; None for the whole region.
        observed_at: when the price began, or was first seen, with a time zone.
        source: the name of the price source that told it, as the store knows it; "" before it is kept.
    """

    provider: str
    instance_type: str
    region: str
    zone: str | None
    market: Market
    usd_per_h: float
    observed_at: datetime
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to rent or use. Prices and counts are of the whole plan.

    Attributes:
        usd_per_h: None if the owner of a private machine configured no cost.
        wait_s: time until the machine is ours; None if nobody configured or measured it.
        startup_s: boot, installation and download of the data set; billed on a cloud.
        billed_step_s: time is billed in whole multiples of it; 0 bills the exact time.
        download_s: the part of ``startup_s`` in which the data set arrives.
        storage_usd_per_h: disks, paid from start to end, also while a spot machine is away; None if nobody
            knows their rate.
        egress_usd: what bringing the result home costs; None if the rate is unknown.
        rates: in words, the rates behind lines of the bill (``"storage"``, ``"data transfer"``), with source
            and date.
        notes: in words, what else to know of the place, such as who uses it.
        blocked: in words, why the account may not start it, such as a quota; None if nothing is known to.
    """

    id: str
    tier: Tier
    provider: str
    gpu: str
    num_gpus: int
    num_nodes: int
    offer: Offer | None
    usd_per_h: float | None
    wait_s: Quantiles | None
    startup_s: float
    minimum_billed_s: float
    billed_step_s: float = 0.0
    download_s: float = 0.0
    storage_usd_per_h: float | None = 0.0
    egress_usd: float | None = 0.0
    rates: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    blocked: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A plan with its time, cost and risk for one job.

    ``time_s`` is wait + start-up + training; ``cost_breakdown_usd`` adds up to ``cost_usd.p50``.

    Attributes:
        tie_with: id of the frontier's plan that is within 5 % of this one in both time and cost, if any.
        what_if: the change to the script that the option supposes, such as ``"bf16"``; None for the script as
            it is.
    """

    plan: Plan
    estimate: IterationEstimate
    iterations: int
    wait_s: Quantiles | None
    train_s: Quantiles
    time_s: Quantiles
    cost_usd: Quantiles
    cost_breakdown_usd: Mapping[str, float]
    p_within_budget: float | None
    p_within_deadline: float | None
    risk: str
    feasible: bool
    removed_by: str | None
    script_changes: tuple[str, ...]
    reasons: tuple[str, ...]
    what_if: str | None = None
    tie_with: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the user wants done: exactly one of ``epochs`` and ``iterations`` is set.

    Attributes:
        iterations: optimizer steps of the origin, converted by samples when GPUs are added.
        iterations_per_epoch: overrides the trace's, for data without a length.
        confidence: least probability with which budget and deadline must hold.
        value_of_time_usd_per_h: what an hour until the job is done is worth; None if nobody said.
        risk_counts: what is safer than all that is faster and cheaper stays on the frontier, too.
    """

    epochs: float | None = None
    iterations: int | None = None
    budget_usd: float | None = None
    deadline_s: float | None = None
    confidence: float = 0.9
    iterations_per_epoch: int | None = None
    value_of_time_usd_per_h: float | None = None
    risk_counts: bool = False


class PickName(StrEnum):
    """What an option can be the best at."""

    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    BEST_VALUE = "best_value"
    SAFEST = "safest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The plan that is the best at something, and why in words."""

    name: PickName
    plan_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer: every option, the ids of the frontier in order of time, the one to take and why.

    Attributes:
        what_ifs: options of a changed script, which never count for the frontier nor the choice.
    """

    job: Job
    options: tuple[Option, ...]
    frontier: tuple[str, ...]
    recommended: str | None
    rule: str | None
    warnings: tuple[str, ...]
    what_ifs: tuple[Option, ...] = ()
    picks: tuple[Pick, ...] = ()

    def _repr_html_(self) -> str:
        """A table in a notebook; the renderer is imported when one asks."""
        from advisor.report.html import recommendation_html

        return recommendation_html(self)
