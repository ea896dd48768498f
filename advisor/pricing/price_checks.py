"""Which prices are plausible: bounds that an offer must keep, and changes that look wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from advisor.core.gpus import catalog_path
from advisor.core.iterables import grouped
from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.instance_types import load_instances, read_as
from advisor.pricing.price_history import key_of
from advisor.pricing.providers import load_providers

if TYPE_CHECKING:
    from advisor.pricing.expected_prices import PriceModel

BOUNDS_FILE = "price_bounds.csv"
ANY_GPU = "*"
# The largest machine that a cloud rents, where it is not given how many GPUs a machine has.
MOST_GPUS = 16
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBounds:
    """The least and the most that one GPU with its share of the machine may cost for an hour."""

    gpu: str
    lowest_usd_per_gpu_h: float
    highest_usd_per_gpu_h: float
    source: str
    as_of: date


@cache
def load_bounds() -> Mapping[str, PriceBounds]:
    """The shipped bounds by GPU; `ANY_GPU` for all others. Raises CatalogError: as `read_as`."""
    return {bounds.gpu: bounds for bounds in read_as(catalog_path(BOUNDS_FILE), PriceBounds)}


def is_possible(usd_per_h: float, gpu: str, num_gpus: int, most_gpus: int | None = None) -> bool:
    """Whether a machine with so many of these GPUs (up to ``most_gpus``) may cost that; never so for NaN.

    >>> is_possible(55.04, "H100-SXM-80GB", 8), is_possible(0.00001, "H100-SXM-80GB", 8)
    (True, False)
    """
    bounds = load_bounds().get(gpu) or load_bounds()[ANY_GPU]
    highest_usd_per_h = (most_gpus or num_gpus) * bounds.highest_usd_per_gpu_h
    return num_gpus * bounds.lowest_usd_per_gpu_h <= usd_per_h <= highest_usd_per_h


def has_possible_prices(offer: Offer) -> bool:
    """Whether all prices of an offer may be."""
    return all(is_possible(usd, offer.gpu, offer.num_gpus) for usd in prices_of(offer))


def prices_of(offer: Offer) -> list[float]:
    """All of an offer: as listed, after discounts, and what spot cost before."""
    spot, discounted = offer.spot_usd_per_h, (offer.contracted_usd_per_h, offer.effective_usd_per_h)
    quantiles = () if spot is None else (spot.p10, spot.p50, spot.p90)
    return [offer.list_usd_per_h, *(usd for usd in discounted if usd is not None), *quantiles]


def possible_points(points: Iterable[PricePoint], offers: Iterable[Offer] = ()) -> Iterator[PricePoint]:
    """Earlier prices that may have been of machines that offers or the catalog name; else of any size."""
    offered = {(o.provider, o.instance_type): o for o in offers}
    for point in points:
        key = point.provider, point.instance_type
        machine = offered.get(key) or load_instances().get(key)
        gpu, least, most = (machine.gpu, machine.num_gpus, None) if machine else (ANY_GPU, 1, MOST_GPUS)
        if is_possible(point.usd_per_h, gpu, least, most):
            yield point


def named(offers: Sequence[Offer]) -> str:
    """The first few offers with their prices, and a count of the others."""
    few = [f"{o.instance_type} {o.zone or o.region} {o.market} {o.usd_per_h:g} USD/h" for o in offers[:_FEW]]
    rest = f" and {len(offers) - _FEW} more" if len(offers) > _FEW else ""
    return ", ".join(few) + rest


JUMP = 0.3
"""A change by more than this share of the earlier price is reported."""
ROUNDING = 1e-4
"""Spot prices are rounded to four decimals: that much above on-demand is still equal to it."""

FAR_BELOW = 0.5
"""Spot below this share of what 9 of 10 prices of its family exceed is reported."""


class Doubt(StrEnum):
    """What kind of thing looks wrong."""

    JUMP = "jump"
    NO_PRICE = "no price"
    MISSING_REGION = "missing region"
    SPOT_ABOVE = "spot above on-demand"
    SPOT_LOW = "spot suspiciously low"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulPrice:
    """One thing that looks wrong, where, and the figures."""

    doubt: Doubt
    provider: str
    place: str
    instance_type: str | None
    detail: str


def doubtful_prices(
    offers: Sequence[Offer], before: Sequence[Offer], points: Sequence[PricePoint]
) -> tuple[DoubtfulPrice, ...]:
    """All that looks wrong beside what was known elsewhere before, and in the history, in order of time."""
    prices: list[tuple[Offer | PricePoint, float]] = [(one, one.list_usd_per_h) for one in offers]
    prices += [(one, one.usd_per_h) for one in points]
    free = [(one, f"{usd:g} USD/h in the {one.market} market") for one, usd in prices if not usd > 0]
    doubts = [*(_doubt(Doubt.NO_PRICE, *one) for one in free), *_jumps(points)]
    return (*doubts, *_missing_regions(offers, before), *_spot_beside_on_demand(offers))


def _jumps(points: Sequence[PricePoint]) -> Iterator[DoubtfulPrice]:
    for prices in grouped(points, lambda point: (point.source, key_of(point))).values():
        old, new = prices[-2:] if len(prices) > 1 else (prices[0], prices[0])
        if old.usd_per_h > 0 and abs(share := new.usd_per_h / old.usd_per_h - 1) > JUMP:
            change = f"{old.usd_per_h:.4f} -> {new.usd_per_h:.4f} USD/h ({share:+.0%})"
            days = f"{old.observed_at:%Y-%m-%d} to {new.observed_at:%Y-%m-%d}"
            yield _doubt(Doubt.JUMP, new, f"{change}, {new.market}, {days}")


def _missing_regions(offers: Sequence[Offer], before: Sequence[Offer]) -> Iterator[DoubtfulPrice]:
    there = {(offer.provider, offer.region, offer.market) for offer in offers}
    providers = {offer.provider for offer in offers}
    known = [(offer.provider, offer.region, offer.market) for offer in before if offer.provider in providers]
    gone = Counter(place for place in known if place not in there)
    for (provider, region, market), number in sorted(gone.items()):
        yield DoubtfulPrice(
            doubt=Doubt.MISSING_REGION, provider=provider, place=region, instance_type=None,
            detail=f"no {market} price, {number} in the snapshot",
        )  # fmt: skip


def _spot_beside_on_demand(offers: Sequence[Offer]) -> Iterator[DoubtfulPrice]:
    # Late, for numpy.
    from advisor.pricing.expected_prices import load_price_model

    model = load_price_model()
    listed = {
        (offer.provider, offer.instance_type, offer.region): offer.list_usd_per_h
        for offer in offers
        if offer.market is Market.ON_DEMAND
    }
    for offer in offers:
        on_demand = listed.get((offer.provider, offer.instance_type, offer.region))
        if offer.market is not Market.SPOT or on_demand is None:
            continue
        if offer.list_usd_per_h > on_demand * (1 + ROUNDING):
            detail = f"{offer.list_usd_per_h:.4f} USD/h against {on_demand:.4f} on demand"
            yield _doubt(Doubt.SPOT_ABOVE, offer, detail)
        elif (why := _why_low(offer, offer.list_usd_per_h / on_demand, model)) is not None:
            yield _doubt(Doubt.SPOT_LOW, offer, why)


def _why_low(offer: Offer, ratio: float, model: PriceModel) -> str | None:
    """What is odd about so little of on-demand; None if nothing is."""
    from advisor.pricing.expected_prices import AT_FLOOR, USUAL_FLOOR

    words = f"{offer.list_usd_per_h:.4f} USD/h, {ratio:.1%} of on-demand"
    family = model.ratio_of(offer.provider, offer.gpu)
    provider = load_providers().get(offer.provider)
    floor = USUAL_FLOOR if provider is None else provider.spot_floor_share or USUAL_FLOOR
    if ratio <= AT_FLOOR * floor:
        return f"{words}: the floor, where no one is bidding"
    if family is not None and ratio < FAR_BELOW * family.p10:
        return f"{words}; 9 of 10 of its family cost more than {family.p10:.1%}"
    return None


def _doubt(doubt: Doubt, thing: Offer | PricePoint, detail: str) -> DoubtfulPrice:
    return DoubtfulPrice(
        doubt=doubt,
        provider=thing.provider,
        place=thing.zone or thing.region,
        instance_type=thing.instance_type,
        detail=detail,
    )
