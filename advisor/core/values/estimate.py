"""What an iteration would take elsewhere, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from advisor.core.findings import Finding

# Quantiles of what is uncertain.

Z90 = 1.2815515655446004
"""The normal distribution's 90 % quantile."""


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


# How the GPUs of a plan are laid out: how many in each node, and over what they exchange.


class Link(StrEnum):
    """Over what GPUs of one node exchange."""

    NVSWITCH = "nvswitch"
    NVLINK_MESH = "nvlink-mesh"
    NVLINK_PAIRS = "nvlink-pairs"
    PCIE = "pcie"
    HOST = "host"


class Network(StrEnum):
    """Over what nodes exchange."""

    INFINIBAND = "infiniband"
    ROCE = "roce"
    EFA = "efa"
    GPUDIRECT_TCP = "gpudirect-tcp"
    TCP = "tcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What a kind of machine exchanges over."""

    link: Link
    link_bytes_per_s: float
    """Per direction and GPU, of the data sheet."""
    link_peers: int = 1
    """GPUs among which a GPU's links are shared: with fewer of them, a part lies idle."""
    is_granted: bool = True
    """False where a board's driver allows peer access that its machine may refuse."""
    network: Network | None = None
    """None where none is known."""
    network_bytes_per_s: float | None = None
    """Per direction and node, of the data sheet; None where it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Equal nodes that train together."""

    gpus_per_node: int
    num_nodes: int = 1
    fabric: Fabric | None = None
    """None where only the GPU's data sheet is known."""
    power_limit_w: float | None = None
    """What each GPU may draw; None where that is what its data sheet says."""

    @property
    def num_gpus(self) -> int:
        """Of all nodes together."""
        return self.gpus_per_node * self.num_nodes

    def of(self, gpu: str) -> str:
        """In words.

        >>> Layout(gpus_per_node=8).of("L4"), Layout(gpus_per_node=8, num_nodes=2).of("L4")
        ('8 x L4', '2 x 8 x L4')
        """
        counts = (self.gpus_per_node,) if self.num_nodes == 1 else (self.num_nodes, self.gpus_per_node)
        return " x ".join(map(str, (*counts, gpu)))


# What one GPU must hold, part by part, and whether it can.


class MemoryPart(StrEnum):
    """What memory of a GPU is taken by."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    TEMPORARY = "temporary"
    COMMUNICATION = "communication"
    FRAGMENTATION = "fragmentation"
    WORKSPACE = "workspace"
    CONTEXT = "context"


class Fit(StrEnum):
    """Whether a need of memory is met: in nine of ten cases, more likely than not, or else not."""

    CERTAIN = "certain"
    LIKELY = "likely"
    NO = "no"

    @classmethod
    def of(cls, need_bytes: Interval, limit_bytes: float) -> Fit:
        """Of a need in so much memory."""
        if need_bytes.p90 <= limit_bytes:
            return cls.CERTAIN
        return cls.LIKELY if need_bytes.p50 <= limit_bytes else cls.NO


class Sharding(StrEnum):
    """What of a model each rank holds a part of, in the terms of ZeRO (Rajbhandari et al., SC 2020).

    ``ZERO_3`` is FSDP's full shard. ``HYBRID`` shards as much within each node and copies between nodes.
    """

    NONE = "none"
    ZERO_1 = "zero-1"
    ZERO_2 = "zero-2"
    ZERO_3 = "zero-3"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestBatch:
    """The most samples of an iteration, accumulation included, that one GPU can hold; 0 if not even one."""

    share: float
    """Of the profiled batch, in the median; 0 where what no batch needs is too much already."""
    certain: int | None
    """Samples that fit in nine of ten cases; None where the profiled batch is unknown."""
    likely: int | None
    """Samples that fit more likely than not; None as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Changes of the script after which it fits."""

    changes: tuple[str, ...]
    """What to change, such as ``("checkpointing",)``."""
    batch_size: int | None
    """Samples of one pass after it; None where unknown."""
    need_bytes: Interval
    """Of one GPU after it."""
    fit: Fit
    """Whether that fits."""
    slower: Interval
    """Its iteration of as many samples over that of the script as it is, had it fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What one GPU must hold at the peak of an iteration."""

    parts: Mapping[MemoryPart, int]
    """Medians in bytes, which add up to the median of the need."""
    need_bytes: Interval
    """Context and fragmentation included."""

    def fit(self, limit_bytes: float) -> Fit:
        """Whether so much memory is enough.

        >>> need = Interval(p10=9e9, p50=10e9, p90=12e9)
        >>> MemoryEstimate(parts={MemoryPart.WEIGHTS: 10**10}, need_bytes=need).fit(11e9).value
        'likely'
        """
        return Fit.of(self.need_bytes, limit_bytes)


# How a script is supposed to divide its model among GPUs, other than by copies of it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A model divided among GPUs. By default each GPU has all of it.

    Ranks are ordered as Megatron-LM orders them: the parts of a layer are neighbours in a node, then come
    copies, then stages (Narayanan et al., SC 2021).
    """

    sharding: Sharding = Sharding.NONE
    """What the copies of a part keep once among them."""
    tensor: int = 1
    """GPUs of a node among which each layer is divided."""
    pipeline: int = 1
    """Stages of layers, one after the other."""
    micro_batches: int | None = None
    """Passes of an iteration; None for as many as let a pipeline be fastest."""

    @property
    def gpus_per_copy(self) -> int:
        """GPUs that hold one copy of the model, its shards aside.

        >>> Split(tensor=8, pipeline=4).gpus_per_copy
        32
        """
        return self.tensor * self.pipeline

    @property
    def divides_layers(self) -> bool:
        """Whether a GPU runs a part of the model, rather than all of it."""
        return self.gpus_per_copy > 1

    @property
    def is_none(self) -> bool:
        """Whether the script runs as it is."""
        return self.sharding is Sharding.NONE and not self.divides_layers

    @property
    def name(self) -> str:
        """As someone would ask for it.

        >>> Split(tensor=8, sharding=Sharding.ZERO_1).name
        'zero-1+tensor-8'
        """
        parts = {"tensor": self.tensor, "pipeline": self.pipeline}
        names = [f"{name}-{number}" for name, number in parts.items() if number > 1]
        return "+".join([*([] if self.sharding is Sharding.NONE else [self.sharding]), *names])

    def suits(self, layout: Layout) -> bool:
        """Whether so many GPUs can hold whole copies, with the parts of a layer in one node.

        >>> eight = Layout(gpus_per_node=8)
        >>> Split(tensor=8).suits(eight), Split(tensor=16).suits(eight), Split(pipeline=3).suits(eight)
        (True, False, False)
        """
        if layout.num_gpus % self.gpus_per_copy or layout.gpus_per_node % self.tensor:
            return False
        copies = layout.num_gpus // self.gpus_per_copy
        return copies % min(copies, layout.gpus_per_node // self.tensor) == 0

    def copies(self, layout: Layout) -> Layout:
        """The GPUs that hold the same part of a model, for a layout that suits.

        >>> Split(tensor=4).copies(Layout(gpus_per_node=8, num_nodes=4)).of("A100")
        '4 x 2 x A100'
        """
        if not self.divides_layers:
            return layout
        copies = layout.num_gpus // self.gpus_per_copy
        within = min(copies, layout.gpus_per_node // self.tensor)
        return Layout(gpus_per_node=within, num_nodes=copies // within, fabric=layout.fabric)


WHOLE = Split()
"""Each GPU has all of the model."""


_LOG_2, _LOG_10 = math.log(2), math.log(10)


class Method(StrEnum):
    """How a time was found, best first."""

    MEASURED = "measured"
    LEARNED = "learned"
    WAVE = "wave"
    ROOFLINE = "roofline"
    ASSUMED = "assumed"


class Bound(StrEnum):
    """What an iteration waits for most: a faster one of it would make the iteration shorter."""

    COMPUTE = "compute"
    MEMORY = "memory"
    NETWORK = "network"
    HOST = "host"
    INPUT = "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWork:
    """What it takes to make the samples of one GPU's iteration."""

    cpu_s: Interval
    """Seconds of one vCPU, however many share them."""
    wait_s: float
    """Seconds for disks and networks: they hold a worker, but no vCPU."""
    num_workers: int | None
    """Processes that load, 0 where the training process loads itself; None if unknown."""
    num_samples: int | None = None
    """Of one iteration; None if unknown."""
    kind: str | None = None
    """Of sample by which ``cpu_s`` is assumed; None where it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """What an iteration gets done; None where it is unknown."""

    num_samples: float | None = None
    """Of all GPUs."""
    model_flops: float | None = None
    """Of the model's products on one GPU, forward and backward, none counted twice."""
    peak_flops_per_s: float | None = None
    """Of one GPU by its data sheet, dense, in the precision of most of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWait(Quantiles):
    """The wait for a rented machine: over at once with some odds, else with a long tail."""

    p_at_once: float
    """Odds that a machine is free."""
    at_once_s: float
    """How long even that takes."""
    later_p50_s: float
    """Median wait beyond ``at_once_s`` of those who must wait."""
    later_p90_s: float
    """What 9 of 10 of them stay under."""

    @classmethod
    def of(cls, *, p_at_once: float, at_once_s: float, later_p50_s: float, later_p90_s: float) -> Self:
        """The wait with these odds, and its own quantiles.

        >>> StartWait.of(p_at_once=0.6, at_once_s=60.0, later_p50_s=3600.0, later_p90_s=36000.0).p50
        60.0
        """
        tail = {"at_once_s": at_once_s, "later_p50_s": later_p50_s, "later_p90_s": later_p90_s}
        odds = cls(p50=0.0, p90=0.0, p_at_once=p_at_once, **tail)
        return replace(odds, p50=odds.after_s(0.5), p90=odds.after_s(0.1))

    def after_s(self, p_longer: float) -> float:
        """Seconds that a share ``p_longer`` of starts exceeds.

        Those who must wait do so for a time of Weibull's distribution, which has both quantiles.
        """
        log_share = math.log((1 - self.p_at_once) / p_longer)
        if log_share <= 0:
            return self.at_once_s
        return self.at_once_s + self.later_p50_s * math.pow(log_share / _LOG_2, self.bend)

    @property
    def bend(self) -> float:
        """The inverse of Weibull's shape; above 1, who has waited long will wait long."""
        return math.log(self.later_p90_s / self.later_p50_s) / math.log(_LOG_10 / _LOG_2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalWait(Quantiles):
    """A wait of which more is known than two quantiles: ``waits_s`` at the probabilities ``levels``."""

    levels: tuple[float, ...]
    waits_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedWait(EmpiricalWait):
    """A wait that was neither configured nor measured: of jobs elsewhere. No deadline leans on it."""

    @property
    def longest_s(self) -> float:
        """That a deadline counts with."""
        return self.waits_s[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationEstimate:
    """Time and memory of one iteration on the GPUs of a layout."""

    gpu: str
    layout: Layout
    iteration_s: Interval
    """Of the GPU and its input together."""
    device_s: Interval
    """Of GPU, host and exposed communication, as if samples were always there."""
    input: InputWork | None
    """What the samples take of the CPUs; None if nothing is loaded, or it was measured with them."""
    input_s: Interval | None
    """In which the vCPUs that are there make the samples, and the network brings them; None where neither is
    known to take time."""
    by_bound: Mapping[Bound, float]
    """Seconds of GPU, host and exposed communication, by what bounds them."""
    by_family: Mapping[str, float]
    """Seconds of one GPU by operator family; they add up to the computation's p50."""
    by_method: Mapping[Method, float]
    """The same seconds by the method that found them."""
    by_operator: Mapping[str, float]
    """The same seconds by operator and method, such as ``"addmm (wave)"``, largest first."""
    communication_s: float
    """Gradient exchange that does not hide behind the backward pass."""
    loading_s: float
    """How long each iteration waits for its data, part of ``by_family``."""
    memory: MemoryEstimate | None
    """What one GPU must hold; None if unknown."""
    memory_limit_bytes: int
    assumptions: tuple[Finding, ...]
    """What the estimate rests on."""
    correction: float = 1.0
    """By what receipts of earlier runs multiplied the time of GPU, host and communication."""
    largest_batch: LargestBatch | None = None
    """That it could hold; None if unknown."""
    remedies: tuple[Remedy, ...] = ()
    """Changes after which it fits, the one that costs the least time first; none where it does."""
    split: Split = WHOLE
    """How the script is supposed to divide its model."""
    work: StepWork = StepWork()
    """What an iteration gets done."""

    @property
    def samples_per_s(self) -> float | None:
        """Of all GPUs together, in the median; None if unknown."""
        return None if self.work.num_samples is None else self.work.num_samples / self.iteration_s.p50

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilization: those of one GPU in a median iteration, over its peak; None if unknown."""
        flops, peak = self.work.model_flops, self.work.peak_flops_per_s
        return None if flops is None or not peak else flops / (self.iteration_s.p50 * peak)

    @property
    def num_gpus(self) -> int:
        """Of all nodes together."""
        return self.layout.num_gpus

    @property
    def loads_in_turn(self) -> bool:
        """Whether the training process makes the samples itself, so that the GPU waits meanwhile."""
        return self.input is not None and self.input.num_workers == 0

    @property
    def binds(self) -> Bound:
        """What takes the largest part of the iteration; workers that the GPU waits for take all of it."""
        largest = max(self.by_bound, key=lambda bound: self.by_bound[bound])
        least_s = self.by_bound[largest] if self.loads_in_turn else 0.0
        return Bound.INPUT if self.loading_s > least_s else largest

    @property
    def memory_bytes(self) -> int | None:
        """The median of what one GPU must hold, context and fragmentation included; None if unknown."""
        return None if self.memory is None else round(self.memory.need_bytes.p50)

    @property
    def fit(self) -> Fit | None:
        """Whether one GPU can hold its share, and how surely; None where the need is unknown."""
        return None if self.memory is None else self.memory.fit(self.memory_limit_bytes)

    @property
    def fits_memory(self) -> bool | None:
        """Whether it can more likely than not; None where the need is unknown."""
        return None if self.fit is None else self.fit is not Fit.NO


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A script that was profiled again with the largest batch that is likely to fit."""

    arguments: tuple[str, ...]
    """Of the script then."""
    batch_size: int | None
    """Samples that it took; None where unknown."""
    estimate: IterationEstimate
    """What it needs and takes."""
