"""What is found of an option: why it is removed, what else to know of it, what can go wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from advisor.core.findings import Caution, Finding, Note, Removal

# Why an option is removed, in the order in which `Option.removed_by` names them.


class TimedOnCpu(Note):
    cpu: str
    num_vcpus: int
    num_steps: int


class RemovedByMemory(Removal, code="memory"):
    needed_bytes: float
    available_bytes: float
    fitting_share: float | None
    batch_size: int | None
    fitting_batch_size: int | None
    remedies: Sequence[Mapping[str, Any]]


class RemovedByHostMemory(Removal, code="host-memory"):
    needed_bytes: float
    available_bytes: float


class RemovedBySharding(Removal, code="sharding"):
    num_ranks: int
    num_gpus: int


class RemovedBySoftware(Removal, code="software"):
    compute_capability: str


class RemovedByAttention(Removal, code="attention"):
    gpu: str
    backends: Sequence[str]
    dtype: str
    head_size: int


class RemovedByQuota(Removal, code="quota"):
    num_vcpus: int
    most_vcpus: int
    instance_types: Sequence[str]
    region: str
    provider: str
    unit: str = "vCPU"


class RemovedBySpot(Removal, code="spot"):
    training_h: float
    cost_usd: float
    checkpoint_interval_h: float | None
    on_demand_h: float
    best: Mapping[str, float] | None


class RemovedByBudget(Removal, code="budget"):
    cost_usd: float
    budget_usd: float
    p: float


class RemovedByDeadline(Removal, code="deadline"):
    time_s: float
    deadline_s: float
    p: float


class RemovedByPolicy(Removal, code="policy"):
    rule: str
    file: str
    detail: str


class RemovedByQueue(Removal, code="queue"):
    of: str
    name: str
    what: Literal["gpu-time", "gpus", "jobs", "nodes", "time"]
    most: float
    asked: float


# What else there is to know of an option.


class Alike(Note):
    num_options: int
    num_of_other_gpus: int
    other_gpus: Sequence[str]
    faster_s: float
    slower_s: float
    cheaper_usd: float
    dearer_usd: float


class ApprovalNeeded(Note):
    by: str
    file: str
    detail: str


class CommunityHost(Caution):
    provider: str


class Unknown(Caution):
    what: Literal[
        "cost", "wait", "memory", "memory-of-profile", "loading", "gradients", "wave-resources", "reading",
        "sharing", "local-wait", "data-place", "data-size", "curve-cost", "calibration", "board", "price",
        "hourly-cost", "cluster-wait", "gpu", "price-date", "operator", "queue-history", "queue-limits",
    ]  # fmt: skip
    names: Sequence[str] = ()


class Reading(Note):
    of: Literal["each-epoch", "local-copy", "once"]
    gib: float
    time_s: float = 0.0
    read_s: float = 0.0
    bytes_per_s: float = 0.0
    bits_per_s: float = 0.0
    by_storage: bool = False
    by_disk: bool = False


class DataMoved(Note):
    place: str
    gib: float
    usd: float
    time_s: float


class GangAssumed(Note):
    num_nodes: int
    p_at_once: float | None
    times_of_one: float


class GlobalBatchHeld(Note):
    source: str
    global_batch_size: int | None
    batch_size: int | None


class GpuInUse(Note):
    gpu_index: int
    busy_share: float | None = None
    used_bytes: float | None = None
    memory_bytes: float | None = None


class InputAssumed(Caution):
    kind: str
    cpu_s_per_sample: Mapping[str, float]


class InputBound(Caution):
    by: Literal["main-process", "workers"]
    is_bound: bool
    loading_s: float
    gpu_s: float | None
    samples_per_s: float | None = None
    num_workers: int | None = None
    vcpus_per_gpu: float | None = None
    cpu_s: float = 0.0


class LaterStart(Note):
    delay_h: int
    start_at: str
    saving_usd: float
    spread_usd: float
    usd: float
    num_days: int


class MemoryTight(Caution):
    of: Literal["gpu", "host"]
    needed_bytes: float
    needed_p90_bytes: float
    available_bytes: float


class MoreVcpus(Note):
    instance_type: str
    vcpus_per_gpu: float
    time_s: float
    cost_usd: float
    instead_of_time_s: float
    instead_of_cost_usd: float


class NearTie(Note):
    plan_id: str
    p_slower: float
    is_on_frontier: bool


class PriceDerived(Caution):
    source: str


class RateUnknown(Caution):
    line: str
    provider: str
    region: str | None
    usd: float
    unit: str
    dearest_provider: str
    dearest_region: str


class RentOrWait(Note):
    own_id: str
    rented_id: str
    value_usd_per_h: float
    break_even_wait_s: float
    mean_wait_s: float | None


class RestartsFromZero(Caution):
    script: str
    saves: bool


class ScalingAssumed(Caution):
    batch_size: int | None
    num_gpus: int


class Tie(Note):
    plan_id: str
    within_share: float


class PlaceContended(Note):
    is_taken_back: bool


class QueueAssumed(Caution):
    num_jobs: int
    num_logs: int
    size: str
    walltime: str | None


class QueueShared(Caution):
    of: str
    name: str
    what: Literal["gpu-time", "gpus", "jobs", "nodes", "time"]
    most: float
    asked: float
    in_use: float


class QuotaNeeded(Note):
    provider: str
    quota: str
    name: str
    count: int
    unit: str
    region: str
    most: int | None = None
    read_on: str | None = None


class WaitAssumed(Note):
    p_at_once: float
    later_p50_s: float
    later_p90_s: float
    basis: str
    num_traces: int
    source: str
    as_of: str


class WaitUnsure(Caution):
    why: Literal["any-size", "other-unit", "surge"]
    enough_jobs: int = 0
    times: float = 0.0
    size_unit: str = ""
    size: float = 0.0


class WaitOfLog(Note):
    num_jobs: int
    size: str | None
    size_unit: str
    walltime: str | None
    queue: str | None
    num_waiting: int | None = None


class WaitOfStarts(Note):
    p_at_once: float
    watched_h: float


# What can go wrong with it, and where the rate of preemptions comes from.


class Risk(Note):
    of: Literal["capacity", "none", "preemption", "wait"]
    num_nodes: int = 1
    preemptions_per_h: float = 0.0
    times_of_one: float = 1.0
    rate_source: Finding | None = None
    price_rise: float | None = None
    recovery: str = "wait"
    num_zones: int = 0


class PreemptionRate(Note):
    of: Literal["assumed", "configured", "log", "published"]
    basis: str = ""
    num_traces: int = 0
    source: str = ""
    as_of: str = ""
    num_preemptions: int = 0
    up_h: float = 0.0
    is_floor: bool = False
    low_pct: int = 0
    high_pct: int = 0
    least_preemptions_per_h: float = 0.0
