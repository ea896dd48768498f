"""What a region has, as far as its on-demand, spot and block prices all need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from advisor.core.errors import CloudError
from advisor.pricing.catalog.instance_types import InstanceType
from advisor.pricing.sources.aws.calls import items_of
from advisor.pricing.sources.aws.machines import described_machines
from advisor.pricing.sources.aws.options import AwsOptions
from advisor.pricing.sources.aws.price_list import ListPrices, list_prices, possible_prices
from advisor.pricing.sources.aws.reply_types import TypeOffering
from advisor.pricing.sources.aws.wording import listed
from advisor.pricing.sources.query import OfferQuery

if TYPE_CHECKING:
    from botocore.client import BaseClient


_NO_NEW_TYPES = "types newer than the catalog are left out: the price list was not to be had"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region to ask and what to ask with; a value of one thread.

    Attributes:
        ec2: client of the region.
        pricing: client of the price list, which knows all regions.
        catalog: machines that need no description, by instance type.
        clock: tells the time, with a time zone.
    """

    name: str
    ec2: BaseClient
    pricing: BaseClient
    query: OfferQuery
    options: AwsOptions
    catalog: Mapping[str, InstanceType]
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a region has.

    Attributes:
        prices: its list prices; None if they could not be learned.
        failure: then why, in words.
        asked_at: when the list prices were true.
        machines: every machine with GPUs of the wanted kind and number, by instance type.
        offered: instance types that can be started here; None if that could not be learned.
        gaps: what is missing from all of this, in words.
        troubles: those of the gaps that come from a call that failed.
    """

    prices: ListPrices | None
    failure: str | None
    asked_at: datetime
    machines: Mapping[str, InstanceType]
    offered: frozenset[str] | None
    gaps: tuple[str, ...]
    troubles: tuple[str, ...] = ()

    @property
    def rentable(self) -> Mapping[str, InstanceType]:
        """The wanted machines that the region offers, or all where that is not known."""
        if self.offered is None:
            return self.machines
        return {name: machine for name, machine in self.machines.items() if name in self.offered}


def survey(region: Region) -> Survey:
    """Asks for the list prices, for what the catalog lacks of their types, and for what can be started."""
    prices, failure, asked_at = None, None, region.clock()
    try:
        prices = list_prices(region.pricing, region.name)
    except CloudError as error:
        failure = str(error)
    machines, gaps, undescribed = _machines(region, prices)
    offered, unchecked = _offered(region, machines)
    troubles = (*undescribed, *unchecked)
    return Survey(
        prices=prices and possible_prices(prices, machines),
        failure=failure,
        asked_at=asked_at,
        machines={name: machine for name, machine in machines.items() if region.query.wants(machine)},
        offered=offered,
        gaps=(*gaps, *troubles),
        troubles=troubles,
    )


def _machines(
    region: Region, prices: ListPrices | None
) -> tuple[Mapping[str, InstanceType], tuple[str, ...], tuple[str, ...]]:
    """The catalog's machines and newer ones; what is not known of the newer ones, and calls that failed."""
    if prices is None:
        return region.catalog, (_NO_NEW_TYPES,), ()
    new = prices.named - region.catalog.keys()
    if not new:
        return region.catalog, (), ()
    try:
        described = described_machines(region.ec2, new, today=region.clock().date())
    except CloudError as error:
        trouble = f"types newer than the catalog are left out ({listed(new)}): {error}"
        return region.catalog, (), (trouble,)
    return {**region.catalog, **described.machines}, described.gaps, ()


def _offered(
    region: Region, machines: Mapping[str, InstanceType]
) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """What can be started here; or None, and why nobody knows."""
    filters = [{"Name": "instance-type", "Values": sorted(machines)}]
    try:
        rows: list[TypeOffering] = items_of(
            region.ec2,
            "ec2:DescribeInstanceTypeOfferings",
            "InstanceTypeOfferings",
            LocationType="region",
            Filters=filters,
        )
    except CloudError as error:
        return None, (f"whether the region offers these types could not be checked: {error}",)
    return frozenset(str(row["InstanceType"]) for row in rows), ()
