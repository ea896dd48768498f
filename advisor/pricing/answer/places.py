"""The cheapest place of each machine."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.values import Offer


def cheapest_places(offers: Sequence[Offer]) -> list[Offer]:
    """The cheapest zone of each (provider, instance type, market), in the order of the offers."""
    best: dict[tuple[str, str, str], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.instance_type, offer.market)
        if key not in best or _order(offer) < _order(best[key]):
            best[key] = offer
    return list(best.values())


def _order(offer: Offer) -> tuple[float, str, str]:
    return offer.usd_per_h, offer.region, offer.zone or ""
