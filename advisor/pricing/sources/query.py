"""What offers are wanted: one definition of matching for every price source."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.errors import InputError, did_you_mean
from advisor.core.globs import is_any
from advisor.core.limits import MAX_USD_PER_H, check_counts, check_each, check_number
from advisor.core.values import Market, Offer
from advisor.pricing.catalog.instance_types import InstanceType

ANYWHERE = "any"
"""Region of an offer that holds in every region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """Offers to keep; an empty tuple or None sets no limit. All limits must hold.

    Attributes:
        providers: names such as ``"aws"``; lower case, whatever was given.
        regions: names or globs such as ``"us-*"``, letter case aside.
        gpus: catalog names (``"A100-SXM-80GB"``); `load_offers` also takes aliases and families.
        num_gpus: numbers of GPUs a machine may have.
        markets: on what terms; texts in any case will do.
        max_usd_per_h: most that the whole machine may cost.

    Raises:
        InputError: the price limit is not a positive number, a market is unknown, or a text or number
            stands where a tuple is needed.
    """

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    num_gpus: tuple[int, ...] = ()
    markets: tuple[Market, ...] = ()
    max_usd_per_h: float | None = None

    def __post_init__(self) -> None:
        for name, example in (("providers", "aws"), ("regions", "us-*"), ("gpus", "L4"), ("markets", "spot")):
            check_each(name, getattr(self, name), str, f"such as ({example!r},)")
        check_counts("num_gpus", self.num_gpus, "such as (1, 8)")
        if self.max_usd_per_h is not None:
            check_number("max_usd_per_h", self.max_usd_per_h, above=0, most=MAX_USD_PER_H)
        object.__setattr__(self, "providers", tuple(name.lower() for name in self.providers))
        object.__setattr__(self, "markets", tuple(map(_market, self.markets)))

    def matches(self, offer: Offer) -> bool:
        """Whether the offer is within every limit."""
        return (
            (not self.providers or offer.provider.lower() in self.providers)
            and self.wants(offer)
            and (not self.markets or offer.market in self.markets)
            and (self.max_usd_per_h is None or offer.usd_per_h <= self.max_usd_per_h)
            and self.covers(offer.region)
        )

    def wants(self, machine: Offer | InstanceType) -> bool:
        """Whether the GPUs are wanted, whatever place, terms and price."""
        return (not self.gpus or machine.gpu in self.gpus) and (
            not self.num_gpus or machine.num_gpus in self.num_gpus
        )

    def covers(self, region: str) -> bool:
        """Whether offers of a region are wanted, there being any or not."""
        return not self.regions or region == ANYWHERE or is_any(self.regions, region)


def _market(name: str) -> Market:
    try:
        return Market(name)
    except ValueError:
        hint = did_you_mean(name, [market.value for market in Market])
        raise InputError(f"there is no market {name!r}: choose of {', '.join(Market)}.{hint}") from None
