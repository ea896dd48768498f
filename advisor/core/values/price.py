"""What is for rent, on what terms and for how much."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from advisor.core.values.interval import Interval


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

    @classmethod
    def _missing_(cls, value: object) -> Market | None:
        """Letter case does not count: flags, settings and programs may all write ``Spot``."""
        name = value.strip().lower() if isinstance(value, str) else value
        return next((market for market in cls if market.value == name), None)


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
        architecture: of the host's CPU, ``x86_64`` or ``arm64``; None if unknown.
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
    architecture: str | None = None
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


class QuoteKind(StrEnum):
    """How a price came to be known, the surest first."""

    AGREED = "agreed"
    LIVE = "live"
    DATED = "dated"
    FLOOR = "floor"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an hour of an offer will cost, and the quote that says so.

    Attributes:
        RUN_DAYS: lengths of runs over which the mean of a price is known.
        usd_per_h: of the whole machine, when a run starts.
        kind: agreed with the owner, quoted (live, dated, or at the provider's floor), or derived.
        age_days: of the quote, in whole days.
        run_p90_usd_per_h: p90 of the mean over a run of each of `RUN_DAYS`, during which the price moves on;
            empty where it stays.
    """

    RUN_DAYS: ClassVar[tuple[float, ...]] = (7.0, 30.0, 90.0)

    usd_per_h: Interval
    kind: QuoteKind
    age_days: float
    run_p90_usd_per_h: tuple[float, ...] = ()

    @property
    def is_guess(self) -> bool:
        """Whether nobody has paid it: it was never quoted, or quoted where no one was bidding."""
        return self.kind in (QuoteKind.DERIVED, QuoteKind.FLOOR)

    @property
    def doubt(self) -> tuple[int, float]:
        """Of equal prices the surer and newer one comes first."""
        return list(QuoteKind).index(self.kind), self.age_days

    @property
    def counted_usd_per_h(self) -> float:
        """What counts when it is compared with others: the median, or the p90 of a guess."""
        return self.usd_per_h.p90 if self.is_guess else self.usd_per_h.p50

    def times(self, num_nodes: int) -> Price:
        """Of so many equal machines, whose prices move together."""
        usd = self.usd_per_h
        return replace(
            self,
            usd_per_h=Interval(p10=usd.p10 * num_nodes, p50=usd.p50 * num_nodes, p90=usd.p90 * num_nodes),
            run_p90_usd_per_h=tuple(p90 * num_nodes for p90 in self.run_p90_usd_per_h),
        )

    def p90_over(self, run_days: float) -> float:
        """p90 of the mean over a run, on the log scale straight between `RUN_DAYS`, beyond them no wider."""
        days, usd = 0.0, self.usd_per_h.p90
        for next_days, next_usd in zip(self.RUN_DAYS, self.run_p90_usd_per_h, strict=False):
            if run_days < next_days:
                return usd * math.pow(next_usd / usd, (run_days - days) / (next_days - days))
            days, usd = next_days, next_usd
        return usd
