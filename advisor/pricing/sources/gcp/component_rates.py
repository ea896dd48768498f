"""One price for each component, region and market, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from advisor.core.values import Market
from advisor.pricing.sources.gcp.skus import Sku, recognise, usd_per_h

Place = tuple[str, str, Market]
"""Component, region, market."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What one unit of a component costs for an hour.

    Attributes:
        usd_per_h: None if unknown.
        fault: why it is unknown, in words; None otherwise.
    """

    usd_per_h: Decimal | None = None
    fault: str | None = None


NO_SKU = Rate(fault="no SKU")


def rates_of(skus: Iterable[Sku], now: datetime) -> dict[Place, Rate]:
    """Rates of all places that some SKU is about, whatever the order of the SKUs.

    SKUs that agree count once. If they disagree, or one of them has no usable price, nobody knows which is
    meant and the place has no rate.

    Args:
        skus: of any kind; those that price nothing of ours do not count.
        now: nor do prices that begin later.
    """
    by_place: dict[Place, set[tuple[str, Rate]]] = {}
    for sku in skus:
        if not (known := recognise(sku.description, sku.usage_type)):
            continue
        component, market = known
        rate = _rate(sku, component, now)
        for region in sku.regions:
            by_place.setdefault((component, region, market), set()).add((sku.sku_id, rate))
    return {place: _agreed(priced) for place, priced in by_place.items()}


def _rate(sku: Sku, component: str, now: datetime) -> Rate:
    try:
        return Rate(usd_per_h=usd_per_h(sku, component, now))
    except ValueError as error:
        return Rate(fault=f"SKU {sku.sku_id} {error}")


def _agreed(priced: set[tuple[str, Rate]]) -> Rate:
    """The one rate of several SKUs."""
    if faults := sorted(rate.fault for _, rate in priced if rate.fault):
        return Rate(fault=", ".join(faults))
    rates = {rate for _, rate in priced}
    if len(rates) == 1:
        return rates.pop()
    prices = ", ".join(sorted(f"{sku_id} {rate.usd_per_h:f}" for sku_id, rate in priced))
    return Rate(fault=f"SKUs disagree (USD/h: {prices})")
