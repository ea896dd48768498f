"""What a fake AWS knows: made small by hand, or filled from the reference data beside the checkout."""

import csv
import dataclasses
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LINUX = "Linux/UNIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """An availability zone; names differ by account, IDs do not."""

    region: str
    name: str
    id: str
    type: str = "availability-zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrice:
    """A price from a moment on."""

    region: str
    zone_name: str
    instance_type: str
    usd_per_h: str
    time: datetime
    product: str = LINUX


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeFacts:
    """An instance type as EC2 describes it."""

    name: str
    gpu: str | None = "L4"
    vendor: str = "NVIDIA"
    num_gpus: int = 1
    partition: float = 1.0
    gpu_mib: int = 22888
    vcpus: int = 4
    memory_mib: int = 16384
    ssd_gb: int = 0
    architecture: str = "x86_64"
    usage_classes: tuple[str, ...] = ("on-demand", "spot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A capacity block for sale."""

    region: str
    zone_name: str
    instance_type: str
    fee_usd: str
    hours: int = 24
    start: datetime = NOW + timedelta(days=3)
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All of it; the server answers from this."""

    regions: tuple[str, ...]
    products: tuple[Mapping[str, Any], ...]
    zones: tuple[Zone, ...] = ()
    spot: tuple[SpotPrice, ...] = ()
    types: tuple[TypeFacts, ...] = ()
    offered: frozenset[tuple[str, str]] = frozenset()
    blocks: tuple[Block, ...] = ()
    scores: tuple[tuple[str, str, int], ...] = ()
    quotas: Mapping[str, float] = dataclasses.field(default_factory=dict)


def product(instance_type: str, region: str, usd: str, **attributes: str) -> dict[str, Any]:
    """A product of the price list in the shape of the sample, whose key and numbering it keeps."""
    sku = f"{zlib.crc32(repr((instance_type, region, usd, attributes)).encode()):016X}"
    dimension = {
        "unit": "Hrs", "endRange": "Inf", "beginRange": "0", "appliesTo": [],
        "description": f"${usd} per On Demand Linux {instance_type} Instance Hour",
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7", "pricePerUnit": {"USD": usd},
    }  # fmt: skip
    term = {
        "priceDimensions": {f"{sku}.JRTCKXETXF.6YS6EN2CT7": dimension}, "sku": sku,
        "effectiveDate": "2026-07-01T00:00:00Z", "offerTermCode": "JRTCKXETXF", "termAttributes": {},
    }  # fmt: skip
    facts = {
        "capacitystatus": "Used", "instanceFamily": "GPU instance", "instanceType": instance_type,
        "licenseModel": "No License required", "locationType": "AWS Region", "marketoption": "OnDemand",
        "operatingSystem": "Linux", "operation": "RunInstances", "preInstalledSw": "NA",
        "regionCode": region, "servicecode": "AmazonEC2", "tenancy": "Shared",
    }  # fmt: skip
    return {
        "product": {"productFamily": "Compute Instance", "attributes": facts | attributes, "sku": sku},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
        "version": "20261101000000",
    }


def small_world() -> World:
    """Two regions, three machines, spot in two zones of one."""
    prices = {
        ("g6.xlarge", "us-east-1"): "0.8048000000",
        ("p5.48xlarge", "us-east-1"): "55.0400000000",
        ("g6.xlarge", "eu-west-1"): "0.9000000000",
    }
    return World(
        regions=("eu-west-1", "us-east-1"),
        products=tuple(product(name, region, usd) for (name, region), usd in prices.items()),
        zones=(
            # Names and numbers of IDs run in opposite orders, as they may in an account.
            Zone(region="us-east-1", name="us-east-1a", id="use1-az2"),
            Zone(region="us-east-1", name="us-east-1b", id="use1-az1"),
            Zone(region="us-east-1", name="us-east-1-chi-1a", id="use1-chi1-az1", type="local-zone"),
            Zone(region="eu-west-1", name="eu-west-1a", id="euw1-az3"),
        ),
        spot=tuple(_small_spot()),
        types=(
            TypeFacts(name="g6.xlarge"),
            TypeFacts(name="p5.48xlarge", gpu="H100", num_gpus=8, usage_classes=("spot", "capacity-block")),
        ),
        offered=frozenset(prices),
    )


def _small_spot() -> Iterator[SpotPrice]:
    for days_ago, zone, usd in ((100, "a", "0.2"), (40, "a", "0.3"), (10, "a", "0.4"), (50, "b", "0.25")):
        yield SpotPrice(
            region="us-east-1",
            zone_name=f"us-east-1{zone}",
            instance_type="g6.xlarge",
            usd_per_h=usd,
            time=NOW - timedelta(days=days_ago),
        )


def many_regions(regions: Sequence[str]) -> World:
    """One machine in each region, at the same list and spot price."""
    return World(
        regions=tuple(regions),
        products=tuple(product("g6.xlarge", region, "0.8048000000") for region in regions),
        zones=tuple(Zone(region=region, name=f"{region}a", id=f"{region}-az1") for region in regions),
        spot=tuple(
            SpotPrice(
                region=region, zone_name=f"{region}a", instance_type="g6.xlarge", usd_per_h="0.3", time=NOW
            )
            for region in regions
        ),
        offered=frozenset(("g6.xlarge", region) for region in regions),
    )


# --- Traps -------------------------------------------------------------------------------------------


_TRAP_TYPES = (
    *(TypeFacts(name=f"g9.{name}") for name in ("zero", "negative", "twice")),
    TypeFacts(name="p9.48xlarge", gpu="B400", num_gpus=8, gpu_mib=400 * 1024, vcpus=256, ssd_gb=30400),
    TypeFacts(name="g6f.large", num_gpus=0, partition=0.125, gpu_mib=2861),
    TypeFacts(name="dl9.24xlarge", vendor="Habana", gpu="Gaudi HL-205", num_gpus=8),
)


def with_traps(world: World, instance_type: str, region: str) -> World:
    """The same world with rows that must not change any price of it."""
    listed = next(
        p["terms"]["OnDemand"]
        for p in world.products
        if p["product"]["attributes"]["instanceType"] == instance_type
        and p["product"]["attributes"]["regionCode"] == region
    )
    (term,) = listed.values()
    (dimension,) = term["priceDimensions"].values()
    usd = dimension["pricePerUnit"]["USD"]
    traps = _trap_products(instance_type, region, usd)
    new = {(facts.name, region) for facts in _TRAP_TYPES}
    return dataclasses.replace(
        world,
        products=(*traps[:4], *world.products, *traps[4:]),
        types=(*world.types, *(t for t in _TRAP_TYPES if t.name not in {w.name for w in world.types})),
        offered=world.offered | new,
    )


def _trap_products(instance_type: str, region: str, usd: str) -> tuple[Mapping[str, Any], ...]:
    """Other kinds of rows of a type, the same row again, rows without a price, and odd new types."""
    reserved = product(instance_type, region, "0.01")
    reserved["terms"] = {"Reserved": reserved["terms"]["OnDemand"]}
    return (
        product(instance_type, region, "0.0100000000", marketoption="CapacityBlock", operation="Run:CB"),
        product(instance_type, region, "0.0100000000", marketoption="CapacityBlock"),
        product(instance_type, region, "9.0000000000", operatingSystem="Windows", operation="Run:0002"),
        product(instance_type, region, "9.1000000000", operatingSystem="RHEL", operation="Run:0010"),
        product(instance_type, region, "9.2000000000", preInstalledSw="SQL Std", operation="Run:0004"),
        product(instance_type, region, "9.3000000000", tenancy="Dedicated"),
        product(instance_type, region, "9.4000000000", tenancy="Host"),
        product(instance_type, region, "0.0000000000", capacitystatus="AllocatedCapacityReservation"),
        product(instance_type, region, "9.5000000000", locationType="AWS Local Zone"),
        product(instance_type, "us-east-1-chi-1", "9.6000000000", locationType="AWS Local Zone"),
        product(instance_type, region, "9.7000000000", licenseModel="Bring your own license"),
        product(instance_type, region, "9.8000000000", instanceFamily="Machine Learning ASIC Instances"),
        product(instance_type, region, usd, usagetype="BoxUsage:the same again"),
        product(instance_type, region, "0.0000000000"),
        product(instance_type, region, "-1.0000000000"),
        reserved,
        product("g9.zero", region, "0.0000000000"),
        product("g9.negative", region, "-0.5000000000"),
        product("g9.twice", region, "1.0000000000"),
        product("g9.twice", region, "2.0000000000"),
        product("p9.48xlarge", region, "200.0000000000"),
        product("g6f.large", region, "0.2000000000"),
        product("dl9.24xlarge", region, "13.0000000000"),
    )  # fmt: skip


# --- Reference data ----------------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ordinary_prices(prices: Path) -> dict[tuple[str, str], str]:
    """On-demand prices by type and region, without local zones and US government regions."""
    return {
        (row["instance_type"], row["region"]): row["usd_per_hour"]
        for row in rows_of(prices / "aws_ondemand.csv")
        if row["is_local_or_wavelength_zone"] != "true" and not row["region"].startswith("us-gov-")
    }


def shared_world(prices: Path) -> World:
    """Everything the reference data says, local zones and government regions included in the price list."""
    on_demand = ordinary_prices(prices)
    quotes = rows_of(prices / "aws_spot_snapshot_azid.csv")
    zones = tuple(_zones({(row["region"], row["availability_zone_id"]) for row in quotes}))
    names = {zone.id: zone.name for zone in zones}
    return World(
        regions=tuple(sorted({region for _, region in on_demand})),
        products=tuple(_products(rows_of(prices / "aws_ondemand.csv"))),
        zones=zones,
        spot=tuple(_spot(quotes, names)),
        types=tuple(map(_facts, rows_of(prices / "aws_instance_types.csv"))),
        offered=frozenset(on_demand) | {(row["instance_type"], row["region"]) for row in quotes},
    )


def _products(rows: Iterable[Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        local = row["is_local_or_wavelength_zone"] == "true"
        location = {"locationType": "AWS Local Zone"} if local else {}
        yield product(row["instance_type"], row["region"], f"{float(row['usd_per_hour']):.10f}", **location)


def _zones(ids: Iterable[tuple[str, str]]) -> Iterator[Zone]:
    """Letters from the end of the alphabet, so that no name follows from its ID."""
    for region, zone_id in sorted(ids):
        letter = "zyxwvuts"[int(zone_id[-1]) - 1]
        yield Zone(region=region, name=f"{region}{letter}", id=zone_id)


def _spot(quotes: Iterable[Mapping[str, str]], names: Mapping[str, str]) -> Iterator[SpotPrice]:
    """The quote as of yesterday, and what it might have been before."""
    for row in quotes:
        if not row["spot_usd_per_hour"]:
            continue
        then = f"{float(row['spot_usd_per_hour']) * 1.3:.6f}"
        for days_ago, usd in ((1, row["spot_usd_per_hour"]), (30, then)):
            yield SpotPrice(
                region=row["region"],
                zone_name=names[row["availability_zone_id"]],
                instance_type=row["instance_type"],
                usd_per_h=usd,
                time=NOW - timedelta(days=days_ago),
            )


def _facts(row: Mapping[str, str]) -> TypeFacts:
    return TypeFacts(
        name=row["instance_type"],
        gpu=row["gpu_name"],
        vendor=row["gpu_manufacturer"],
        num_gpus=int(row["gpu_count"]),
        partition=float(row["gpu_partition_size"] or 1),
        gpu_mib=round(float(row["gpu_memory_gib_each"]) * 1024),
        vcpus=int(row["vcpus"]),
        memory_mib=round(float(row["memory_gib"]) * 1024),
        ssd_gb=int(row["local_nvme_gb"]),
        architecture=row["architectures"],
        usage_classes=tuple(row["usage_classes"].split("|")),
    )
