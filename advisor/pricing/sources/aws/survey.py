"""What a region has: machines that can be started there, their list prices, and its zones."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from advisor.core.errors import CloudError, UnknownGpuError
from advisor.core.gpus import load_gpus, provider_gpu
from advisor.core.units import GB, MIB
from advisor.pricing.instance_types import InstanceType, load_instances, price_includes
from advisor.pricing.price_checks import is_possible
from advisor.pricing.sources.aws.aws_calls import GARBLED, AwsOptions, Row, counted, items_of, listed
from advisor.pricing.sources.protocol import OfferQuery

if TYPE_CHECKING:
    from botocore.client import BaseClient


LIST_ACTION = "pricing:GetProducts"

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
    """On-demand prices of a region."""

    usd_per_h: Mapping[str, float]
    """Of the whole machine by instance type."""
    named: frozenset[str]
    """Every instance type with a row, priced or not."""
    gaps: tuple[str, ...]
    """Rows that give no price, and why, in words."""
    num_unread: int = 0
    """Rows that are no products."""


def list_prices(client: BaseClient, region: str) -> ListPrices:
    """Linux prices of the GPU machines of a region: shared tenancy, no software, no commitment.

    Raises CloudError: the call failed, or not one row of the reply can be read.
    """
    wanted = {**_ATTRIBUTES, "regionCode": region}
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in sorted(wanted.items())
    ]
    rows: list[str] = items_of(
        client, LIST_ACTION, "PriceList", ServiceCode="AmazonEC2", Filters=filters, MaxResults=100
    )
    prices = read_products(rows, region)
    if prices.num_unread and not prices.named:
        raise CloudError(GARBLED.format(action=LIST_ACTION))
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
                # NaN where it is not in US dollars an hour.
                prices[attributes["instanceType"]].update(
                    float(dimension["pricePerUnit"]["USD"]) if dimension["unit"] == "Hrs" else math.nan
                    for term in product["terms"]["OnDemand"].values()
                    for dimension in term["priceDimensions"].values()
                )
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            num_unread += 1
    return settled(prices, num_unread)


def possible_prices(prices: ListPrices, machines: Mapping[str, InstanceType]) -> ListPrices:
    """Without prices that no machine with these GPUs can have: those count as unknown."""
    kept = {
        name: usd_per_h
        for name, usd_per_h in prices.usd_per_h.items()
        if name not in machines or is_possible(usd_per_h, machines[name].gpu, machines[name].num_gpus)
    }
    lost = prices.usd_per_h.keys() - kept
    gap = f"list prices that no such machine can have count as unknown: {listed(lost)}"
    return replace(prices, usd_per_h=kept, gaps=(*prices.gaps, gap)) if lost else prices


def settled(prices: Mapping[str, set[float]], num_unread: int) -> ListPrices:
    """Of all prices (USD/h) that are listed of a type the one that is sound; why the others are none."""
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


TYPES_ACTION = "ec2:DescribeInstanceTypes"
MINIMUM_BILLED_S = 60.0
"""Linux is billed by the second after a first minute (EC2 on-demand pricing)."""

_GPU_VENDORS = ("NVIDIA", "AMD")


def catalog_machines() -> Mapping[str, InstanceType]:
    """AWS's instance types of the catalog by name. Raises CatalogError: it is missing or broken."""
    return {name: machine for (provider, name), machine in load_instances().items() if provider == "aws"}


def described_machines(
    client: BaseClient, instance_types: Collection[str], *, today: date
) -> tuple[Mapping[str, InstanceType], tuple[str, ...]]:
    """Those with whole GPUs of types that the catalog lacks; what the others are. Raises CloudError."""
    filters = [{"Name": "instance-type", "Values": sorted(instance_types)}]
    rows: list[Row] = items_of(client, TYPES_ACTION, "InstanceTypes", Filters=filters)
    replies = [reply for reply in rows if reply["InstanceType"] in instance_types]
    machines, fractions, others = {}, [], []
    for reply in replies:
        name = str(reply["InstanceType"])
        gpus = reply.get("GpuInfo", {}).get("Gpus", [])
        if any(gpu.get("GpuPartitionSize", 1.0) < 1 for gpu in gpus):
            fractions.append(name)
        elif len(gpus) == 1 and gpus[0].get("Manufacturer") in _GPU_VENDORS and gpus[0].get("Count", 0) > 0:
            machines[name] = _machine(reply, gpus[0], today)
        else:
            others.append(name)
    foreign = [f"{m.gpu} with {m.gpu_memory}" for m in machines.values() if m.gpu not in load_gpus()]
    reasons = (
        ("GPUs that the catalog lacks keep AWS's name", foreign),
        ("types with a fraction of a GPU are left out", fractions),
        ("types without GPUs of NVIDIA or AMD are left out", others),
        ("types that EC2 does not describe here are left out",
         set(instance_types) - {reply["InstanceType"] for reply in replies}),
    )  # fmt: skip
    return machines, tuple(f"{what}: {listed(names)}" for what, names in reasons if names)


def _machine(reply: Row, gpu: Row, today: date) -> InstanceType:
    """The machine in our units; a GPU that the catalog lacks keeps AWS's name for it."""
    memory = f"{round(gpu['MemoryInfo']['SizeInMiB'] / 1024, 2):g} GiB"
    try:
        gpu_name = provider_gpu("aws", gpu["Name"], memory).name
    except UnknownGpuError:
        gpu_name = f"aws {gpu['Name']}"
    host = {
        "vcpus": int(reply["VCpuInfo"]["DefaultVCpus"]),
        "memory_bytes": int(reply["MemoryInfo"]["SizeInMiB"]) * MIB,
        "local_ssd_bytes": int(reply.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)) * GB,
    }
    architecture = reply["ProcessorInfo"]["SupportedArchitectures"][0]
    return InstanceType(
        provider="aws",
        instance_type=reply["InstanceType"],
        gpu=gpu_name,
        num_gpus=int(gpu["Count"]),
        gpu_memory=memory,
        architecture=architecture,
        minimum_billed_s=MINIMUM_BILLED_S,
        includes=price_includes(architecture=architecture, **host),
        source=TYPES_ACTION,
        as_of=today,
        **host,
    )


def zone_ids(ec2: BaseClient) -> Mapping[str, str]:
    """IDs by name of availability zones; no local and wavelength ones. Raises CloudError: the call failed."""
    rows: list[Row] = items_of(ec2, "ec2:DescribeAvailabilityZones", "AvailabilityZones")
    return {
        row["ZoneName"]: row["ZoneId"]
        for row in rows
        if row.get("ZoneType", "availability-zone") == "availability-zone"
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedRegion:
    """A region to ask and what to ask with; a value of one thread."""

    name: str
    ec2: BaseClient
    """Client of the region."""
    pricing: BaseClient
    """Client of the price list, which knows all regions."""
    query: OfferQuery
    options: AwsOptions
    catalog: Mapping[str, InstanceType]
    """Machines that need no description, by instance type."""
    clock: Callable[[], datetime]
    """Gives the time, with a time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a region has."""

    prices: ListPrices | None
    """Its list prices; None if they could not be learned."""
    failure: str | None
    """Then why, in words."""
    asked_at: datetime
    """When the list prices were true."""
    machines: Mapping[str, InstanceType]
    """Every machine with GPUs of the wanted kind and number, by instance type."""
    offered: frozenset[str] | None
    """Instance types that can be started here; None if that could not be learned."""
    gaps: tuple[str, ...]
    """What is missing from all of this, in words."""
    troubles: tuple[str, ...] = ()
    """Those of the gaps that come from a call that failed."""

    @property
    def rentable(self) -> Mapping[str, InstanceType]:
        """The wanted machines that the region offers, or all where that is not known."""
        if self.offered is None:
            return self.machines
        return {name: machine for name, machine in self.machines.items() if name in self.offered}


def survey(region: SurveyedRegion) -> Survey:
    """Asks for the list prices, for what the catalog lacks of their types, and for what can be started."""
    prices, failure, asked_at = None, None, region.clock()
    try:
        prices = list_prices(region.pricing, region.name)
    except CloudError as error:
        failure = str(error)
    machines, gaps, troubles = _machines(region, prices)
    offered = None
    try:
        offered = _offered(region, machines)
    except CloudError as error:
        trouble = f"whether the region offers these types could not be checked: {error}"
        troubles = (*troubles, trouble)
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
    region: SurveyedRegion, prices: ListPrices | None
) -> tuple[Mapping[str, InstanceType], tuple[str, ...], tuple[str, ...]]:
    """The catalog's machines and newer ones; what is not known of the newer ones, and calls that failed."""
    if prices is None:
        gap = "types newer than the catalog are left out: the price list was not to be had"
        return region.catalog, (gap,), ()
    new = prices.named - region.catalog.keys()
    if not new:
        return region.catalog, (), ()
    try:
        machines, gaps = described_machines(region.ec2, new, today=region.clock().date())
    except CloudError as error:
        trouble = f"types newer than the catalog are left out ({listed(new)}): {error}"
        return region.catalog, (), (trouble,)
    return {**region.catalog, **machines}, gaps, ()


def _offered(region: SurveyedRegion, machines: Mapping[str, InstanceType]) -> frozenset[str]:
    """What can be started here. Raises CloudError: the call failed."""
    filters = [{"Name": "instance-type", "Values": sorted(machines)}]
    action, limits = "ec2:DescribeInstanceTypeOfferings", {"LocationType": "region", "Filters": filters}
    rows: list[Row] = items_of(region.ec2, action, "InstanceTypeOfferings", **limits)
    return frozenset(str(row["InstanceType"]) for row in rows)
