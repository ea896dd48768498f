"""What one GPU must hold, part by part, and whether it can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from advisor.core.values.interval import Interval


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
    """The most samples of an iteration, accumulation included, that one GPU can hold; 0 where not even one.

    Attributes:
        share: of the profiled batch, in the median; 0 where what no batch needs is too much already.
        certain: samples that fit in nine of ten cases; None where the profiled batch is unknown.
        likely: samples that fit more likely than not; None as well.
    """

    share: float
    certain: int | None
    likely: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Changes of the script after which it fits.

    Attributes:
        changes: what to change, such as ``("checkpointing",)``.
        batch_size: samples of one pass after it; None where nobody knows them.
        need_bytes: of one GPU after it.
        fit: whether that fits.
        slower: its iteration of as many samples over that of the script as it is, had it fitted.
    """

    changes: tuple[str, ...]
    batch_size: int | None
    need_bytes: Interval
    fit: Fit
    slower: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What one GPU must hold at the peak of an iteration.

    Attributes:
        parts: medians in bytes, which add up to the median of the need.
        need_bytes: context and fragmentation included.
    """

    parts: Mapping[MemoryPart, int]
    need_bytes: Interval

    def fit(self, limit_bytes: float) -> Fit:
        """Whether so much memory is enough.

        >>> need = Interval(p10=9e9, p50=10e9, p90=12e9)
        >>> MemoryEstimate(parts={MemoryPart.WEIGHTS: 10**10}, need_bytes=need).fit(11e9).value
        'likely'
        """
        return Fit.of(self.need_bytes, limit_bytes)
