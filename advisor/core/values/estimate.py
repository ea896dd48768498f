"""What an iteration would take elsewhere, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from advisor.core.findings import Finding

_LOG_2, _LOG_10 = math.log(2), math.log(10)


class Method(StrEnum):
    """How a time was found, best first."""

    MEASURED = "measured"
    LEARNED = "learned"
    WAVE = "wave"
    ROOFLINE = "roofline"


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
class IterationEstimate:
    """Time and memory of one iteration on ``num_gpus`` GPUs of one node.

    Attributes:
        by_family: seconds of one GPU by operator family; they add up to the computation's p50.
        by_method: the same seconds by the method that found them.
        by_operator: the same seconds by operator and method, such as ``"addmm (wave)"``, largest first.
        communication_s: gradient exchange that does not hide behind the backward pass.
        loading_s: how long each iteration waits for its data, part of ``by_family``.
        memory_bytes: what one GPU must hold, context and fragmentation included; None if unknown.
        assumptions: what the estimate rests on.
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
    assumptions: tuple[Finding, ...]

    @property
    def fits_memory(self) -> bool | None:
        """Whether one GPU can hold its share; None where the need is unknown."""
        return None if self.memory_bytes is None else self.memory_bytes <= self.memory_limit_bytes
