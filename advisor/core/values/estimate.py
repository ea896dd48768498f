"""What an iteration would take elsewhere, with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from advisor.core.findings import Finding


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
class EmpiricalWait(Quantiles):
    """A wait of which more is known than two quantiles: ``waits_s`` at the probabilities ``levels``."""

    levels: tuple[float, ...]
    waits_s: tuple[float, ...]


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
