"""On-demand prices from the AWS price list (``pricing:GetProducts``)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.core.errors import CloudError
from advisor.pricing.catalog.bounds import is_possible
from advisor.pricing.catalog.instance_types import InstanceType
from advisor.pricing.sources.aws.calls import items_of
from advisor.pricing.sources.aws.faults import GARBLED
from advisor.pricing.sources.aws.reply_types import Product
from advisor.pricing.sources.aws.wording import counted, listed

if TYPE_CHECKING:
    from botocore.client import BaseClient


ACTION = "pricing:GetProducts"

# Asked for, and demanded of each row: capacity blocks, other software and tenancy lie beside these rows.
_ATTRIBUTES = {
    "capacitystatus": "Used",
    "instanceFamily": "GPU instance",
    "licenseModel": "No License required",
    "locationType": "AWS Region",
    "marketoption": "OnDemand",
    "operatingSystem": "Linux",
    "operation": "RunInstances",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPrices:
    """On-demand prices of a region.

    Attributes:
        usd_per_h: of the whole machine by instance type.
        named: every instance type with a row, priced or not.
        gaps: rows that give no price, and why, in words.
        num_unread: rows that are no products.
    """

    usd_per_h: Mapping[str, float]
    named: frozenset[str]
    gaps: tuple[str, ...]
    num_unread: int = 0


def list_prices(client: BaseClient, region: str) -> ListPrices:
    """Linux prices of the GPU machines of a region: shared tenancy, no software, no commitment.

    Raises:
        CloudError: the call failed, or not one row of the reply can be read.
    """
    wanted = {**_ATTRIBUTES, "regionCode": region}
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in sorted(wanted.items())
    ]
    rows: list[str] = items_of(
        client, ACTION, "PriceList", ServiceCode="AmazonEC2", Filters=filters, MaxResults=100
    )
    prices = read_products(rows, region)
    if prices.num_unread and not prices.named:
        raise CloudError(GARBLED.format(action=ACTION))
    return prices


def read_products(rows: Iterable[str], region: str) -> ListPrices:
    """Prices of products as the price list writes them, each a JSON text.

    A price that is not above 0 is unknown. Two different prices of a type leave it without one: nothing
    tells which is true.
    """
    wanted = {**_ATTRIBUTES, "regionCode": region}
    prices: defaultdict[str, set[float]] = defaultdict(set)
    num_unread = 0
    for row in rows:
        try:
            product = json.loads(row)
            attributes = product["product"]["attributes"]
            if wanted.items() <= attributes.items():
                prices[attributes["instanceType"]].update(_hourly_usd(product))
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            num_unread += 1
    return settled(prices, num_unread)


def possible_prices(prices: ListPrices, machines: Mapping[str, InstanceType]) -> ListPrices:
    """Without prices that no machine with these GPUs can have: those count as unknown."""
    impossible = [
        name
        for name, usd_per_h in prices.usd_per_h.items()
        if name in machines and not is_possible(usd_per_h, machines[name].gpu, machines[name].num_gpus)
    ]
    if not impossible:
        return prices
    gap = f"list prices that no such machine can have count as unknown: {listed(impossible)}"
    kept = {name: usd_per_h for name, usd_per_h in prices.usd_per_h.items() if name not in impossible}
    return replace(prices, usd_per_h=kept, gaps=(*prices.gaps, gap))


def _hourly_usd(product: Product) -> Iterator[float]:
    """Each on-demand price of a product; NaN where it is not in US dollars an hour."""
    for term in product["terms"]["OnDemand"].values():
        for dimension in term["priceDimensions"].values():
            hourly = dimension["unit"] == "Hrs"
            yield float(dimension["pricePerUnit"]["USD"]) if hourly else math.nan


def settled(prices: Mapping[str, set[float]], num_unread: int) -> ListPrices:
    """Prices of which there is one and it is one; why the others are none.

    Args:
        prices: all that are listed, by instance type, in USD/h.
        num_unread: rows that are no products.
    """
    sound = {
        name: {usd_per_h for usd_per_h in usd if usd_per_h > 0 and math.isfinite(usd_per_h)}
        for name, usd in prices.items()
    }
    unpriced = [name for name, usd in prices.items() if usd != sound[name] or not usd]
    doubtful = [name for name, usd in sound.items() if len(usd) > 1]
    gaps = []
    if unpriced:
        gaps.append(f"list prices that are not above 0 USD an hour count as unknown: {listed(unpriced)}")
    if doubtful:
        gaps.append(f"AWS lists different prices for one type, so none is taken: {listed(doubtful)}")
    if num_unread:
        gaps.append(f"{counted(num_unread, 'row')} of the price list could not be read")
    return ListPrices(
        usd_per_h={name: min(usd) for name, usd in sorted(sound.items()) if len(usd) == 1},
        named=frozenset(prices),
        gaps=tuple(gaps),
        num_unread=num_unread,
    )
