"""The cheapest place of each machine."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.core.values import Offer, Price

PricedOffer = tuple[Offer, Price]


def cheapest_places(priced: Iterable[PricedOffer]) -> list[PricedOffer]:
    """The cheapest zone of each (provider, instance type, market), in the order of the offers.

    A guessed price counts at its p90.
    """
    best: dict[tuple[str, str, str], PricedOffer] = {}
    for one in priced:
        offer, _ = one
        key = (offer.provider, offer.instance_type, offer.market)
        if key not in best or _order(one) < _order(best[key]):
            best[key] = one
    return list(best.values())


def _order(priced: PricedOffer) -> tuple[float, tuple[int, float], str, str]:
    offer, price = priced
    return price.counted_usd_per_h, price.doubt, offer.region, offer.zone or ""
