"""What an iteration would take elsewhere, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from advisor.core.findings import Finding
from advisor.core.values.interval import Interval, Quantiles
from advisor.core.values.layout import Layout
from advisor.core.values.memory import Fit, LargestBatch, MemoryEstimate, Remedy
from advisor.core.values.split import WHOLE, Split

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
    """What it takes to make the samples of one GPU's iteration.

    Attributes:
        cpu_s: seconds of one vCPU, however many share them.
        wait_s: seconds for disks and networks: they hold a worker, but no vCPU.
        num_workers: processes that load, 0 where the training process loads itself; None if unknown.
        num_samples: of one iteration; None if unknown.
        kind: of sample by which ``cpu_s`` is assumed; None where it was measured.
    """

    cpu_s: Interval
    wait_s: float
    num_workers: int | None
    num_samples: int | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """What an iteration gets done; None where it is unknown.

    Attributes:
        num_samples: of all GPUs.
        model_flops: of the model's products on one GPU, forward and backward, none counted twice.
        peak_flops_per_s: of one GPU by its data sheet, dense, in the precision of most of them.
    """

    num_samples: float | None = None
    model_flops: float | None = None
    peak_flops_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWait(Quantiles):
    """The wait for a rented machine: over at once with some odds, else with a long tail.

    Attributes:
        p_at_once: odds that a machine is free.
        at_once_s: how long even that takes.
        later_p50_s: median wait beyond ``at_once_s`` of those who must wait.
        later_p90_s: what 9 of 10 of them stay under.
    """

    p_at_once: float
    at_once_s: float
    later_p50_s: float
    later_p90_s: float

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
class IterationEstimate:
    """Time and memory of one iteration on the GPUs of a layout.

    Attributes:
        iteration_s: of the GPU and its input together.
        device_s: of GPU, host and exposed communication, as if samples were always there.
        input: what the samples take of the CPUs; None if nothing is loaded, or it was measured with them.
        input_s: in which the vCPUs that are there make the samples, and the network brings them; None where
            neither is known to take time.
        by_bound: seconds of GPU, host and exposed communication, by what bounds them.
        by_family: seconds of one GPU by operator family; they add up to the computation's p50.
        by_method: the same seconds by the method that found them.
        by_operator: the same seconds by operator and method, such as ``"addmm (wave)"``, largest first.
        communication_s: gradient exchange that does not hide behind the backward pass.
        loading_s: how long each iteration waits for its data, part of ``by_family``.
        memory: what one GPU must hold; None if unknown.
        largest_batch: that it could hold; None if unknown.
        remedies: changes after which it fits, the one that costs the least time first; none where it does.
        split: how the script is supposed to divide its model.
        assumptions: what the estimate rests on.
        work: what an iteration gets done.
        correction: by what receipts of earlier runs multiplied the time of GPU, host and communication.
    """

    gpu: str
    layout: Layout
    iteration_s: Interval
    device_s: Interval
    input: InputWork | None
    input_s: Interval | None
    by_bound: Mapping[Bound, float]
    by_family: Mapping[str, float]
    by_method: Mapping[Method, float]
    by_operator: Mapping[str, float]
    communication_s: float
    loading_s: float
    memory: MemoryEstimate | None
    memory_limit_bytes: int
    assumptions: tuple[Finding, ...]
    correction: float = 1.0
    largest_batch: LargestBatch | None = None
    remedies: tuple[Remedy, ...] = ()
    split: Split = WHOLE
    work: StepWork = StepWork()

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
    """A script that was profiled again with the largest batch that is likely to fit.

    Attributes:
        arguments: of the script then.
        batch_size: samples that it took; None where nobody knows.
        estimate: what it needs and takes.
    """

    arguments: tuple[str, ...]
    batch_size: int | None
    estimate: IterationEstimate
