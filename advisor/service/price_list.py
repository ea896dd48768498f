"""What is for rent: live prices where they were pulled, else the dated snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from advisor.core.limits import MAX_USD_PER_H, check_number

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.pricing.answer.answering import Offers
    from advisor.pricing.answer.places import PricedOffer
    from advisor.service.listening import Listener


class PriceOrder(StrEnum):
    """By what offers are sorted: then by price and place, so that the order is always the same."""

    PRICE = "price"
    GPU_PRICE = "gpu-price"
    AGE = "age"
    PLACE = "place"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricesRequest:
    """Which offers to list, within the clouds, regions and markets of the settings.

    Attributes:
        gpus: GPUs or families with counts, such as ``A100:8``; none for any.
        max_usd_per_h: of the whole machine.
        order: by what to sort.
        every_zone: also zones that cost more than the cheapest of their region.
    """

    gpus: tuple[str, ...] = ()
    max_usd_per_h: float | None = None
    order: PriceOrder = PriceOrder.PRICE
    every_zone: bool = False


def list_prices(request: PricesRequest, config: Config, listener: Listener) -> Offers:
    """Offers at the prices of the organisation's contracts, sorted, with warnings about them.

    Raises:
        InputError: a provider, a region or a number of GPUs that nothing has.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: no offer is within all limits; says which has to give way.
        StaleCatalogError: prices older than ``prices.max_age``.
        StoreError: the database of the settings cannot be read.
    """
    from advisor.pricing.answer.places import cheapest_places
    from advisor.service.offer_filters import OfferFilter
    from advisor.service.offers import prices_of, query_offers, wanted_counts

    most = request.max_usd_per_h
    if most is not None:
        check_number(listener.name_of("max_usd_per_h"), most, above=0, most=MAX_USD_PER_H)
    asked = OfferFilter(gpus=request.gpus, wanted=wanted_counts(request.gpus, listener), max_usd_per_h=most)
    answer = query_offers(config, asked, listener)
    priced = list(zip(answer.offers, prices_of(answer.offers), strict=True))
    shown = _sorted(priced if request.every_zone else cheapest_places(priced), request.order)
    return replace(
        answer, offers=tuple(offer for offer, _ in shown), prices=tuple(price for _, price in shown)
    )


def _sorted(priced: Iterable[PricedOffer], order: PriceOrder) -> list[PricedOffer]:
    def key(one: PricedOffer) -> tuple[object, ...]:
        offer, price = one
        place = (offer.provider, offer.region, offer.zone or "", offer.instance_type)
        first: dict[PriceOrder, tuple[object, ...]] = {
            PriceOrder.PRICE: (),
            PriceOrder.GPU_PRICE: (price.counted_usd_per_h / offer.num_gpus,),
            PriceOrder.AGE: (-offer.retrieved_at.timestamp(),),
            PriceOrder.PLACE: place,
        }
        return (*first[order], price.counted_usd_per_h, *place)

    return sorted(priced, key=key)
