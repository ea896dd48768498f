"""Replies of a fake AWS: the EC2 query protocol (XML) and the JSON 1.1 of the price list and quotas."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

from tests.clouds.aws_world import SpotPrice, TypeFacts, World

Arguments = Mapping[str, str]
"""Of the query protocol, such as ``{"Filter.1.Name": "instance-type", "Filter.1.Value.1": "g6.xlarge"}``."""


def xml_reply(operation: str, body: Mapping[str, Any]) -> bytes:
    """A reply of EC2; lists are rows of ``<item>``."""
    inside = _xml(body)
    return f'<?xml version="1.0"?><{operation}Response>{inside}</{operation}Response>'.encode()


def _xml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "".join(f"<{key}>{_xml(inner)}</{key}>" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "".join(f"<item>{_xml(item)}</item>" for item in value)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S.000Z}"
    return escape(str(value))


def page(rows: Sequence[Any], token: str, size: int) -> tuple[Sequence[Any], str]:
    """Rows from a token on, and the token of the rest."""
    start = int(token or 0)
    end = start + size
    return rows[start:end], str(end) if end < len(rows) else ""


def filters(arguments: Arguments) -> dict[str, set[str]]:
    """Wanted values by filter name."""
    values: dict[str, set[str]] = {}
    for key, name in arguments.items():
        if key.startswith("Filter.") and key.endswith(".Name"):
            number = key.split(".")[1]
            prefix = f"Filter.{number}.Value."
            values[name] = {value for other, value in arguments.items() if other.startswith(prefix)}
    return values


# --- EC2 ---------------------------------------------------------------------------------------------


def _regions(world: World, region: str, arguments: Arguments) -> list[Any]:
    return [{"regionName": name, "regionEndpoint": f"ec2.{name}.amazonaws.com"} for name in world.regions]


def _zones(world: World, region: str, arguments: Arguments) -> list[Any]:
    return [
        {"zoneName": zone.name, "zoneId": zone.id, "zoneType": zone.type, "regionName": region}
        for zone in world.zones
        if zone.region == region
    ]


def _offerings(world: World, region: str, arguments: Arguments) -> list[Any]:
    wanted = filters(arguments).get("instance-type")
    return [
        {"instanceType": name, "locationType": "region", "location": region}
        for name, place in sorted(world.offered)
        if place == region and (wanted is None or name in wanted)
    ]


def _types(world: World, region: str, arguments: Arguments) -> list[Any]:
    asked = filters(arguments)
    names, classes = asked.get("instance-type"), asked.get("supported-usage-class")
    return [
        _described(facts)
        for facts in world.types
        if (names is None or facts.name in names)
        and (classes is None or classes & set(facts.usage_classes))
        and (facts.name, region) in world.offered
    ]


def _described(facts: TypeFacts) -> dict[str, Any]:
    body: dict[str, Any] = {
        "instanceType": facts.name,
        "vCpuInfo": {"defaultVCpus": facts.vcpus},
        "memoryInfo": {"sizeInMiB": facts.memory_mib},
        "processorInfo": {"supportedArchitectures": [facts.architecture]},
    }
    if facts.ssd_gb:
        body["instanceStorageInfo"] = {"totalSizeInGB": facts.ssd_gb}
    if facts.gpu:
        gpu = {
            "name": facts.gpu,
            "manufacturer": facts.vendor,
            "count": facts.num_gpus,
            "gpuPartitionSize": facts.partition,
            "memoryInfo": {"sizeInMiB": facts.gpu_mib},
        }
        body["gpuInfo"] = {"gpus": [gpu], "totalGpuMemoryInMiB": facts.num_gpus * facts.gpu_mib}
    return body


def _spot(world: World, region: str, arguments: Arguments) -> list[Any]:
    """Newest first; as EC2 does, with the last price before the start, which held then."""
    asked = filters(arguments)
    start = datetime.fromisoformat(arguments["StartTime"])
    before: dict[tuple[str, str], SpotPrice] = {}
    kept = []
    for price in sorted(world.spot, key=lambda price: price.time):
        if price.region != region or price.instance_type not in asked.get(
            "instance-type", {price.instance_type}
        ):
            continue
        if price.product not in asked.get("product-description", {price.product}):
            continue
        if price.time >= start:
            kept.append(price)
        else:
            before[price.instance_type, price.zone_name] = price
    return [
        {
            "availabilityZone": price.zone_name,
            "instanceType": price.instance_type,
            "productDescription": price.product,
            "spotPrice": price.usd_per_h,
            "timestamp": price.time,
        }
        for price in reversed([*before.values(), *kept])
    ]


def _blocks(world: World, region: str, arguments: Arguments) -> list[Any]:
    return [
        {
            "capacityBlockOfferingId": f"cb-{number}",
            "instanceType": block.instance_type,
            "availabilityZone": block.zone_name,
            "instanceCount": int(arguments["InstanceCount"]),
            "startDate": block.start,
            "endDate": block.start + timedelta(hours=block.hours),
            "capacityBlockDurationHours": block.hours,
            "upfrontFee": block.fee_usd,
            "currencyCode": block.currency,
            "tenancy": "default",
        }
        for number, block in enumerate(world.blocks)
        if (block.region, block.instance_type) == (region, arguments["InstanceType"])
    ]


def _scores(world: World, region: str, arguments: Arguments) -> list[Any]:
    return [{"region": where, "availabilityZoneId": zone, "score": n} for where, zone, n in world.scores]


EC2: Mapping[str, tuple[str, Callable[[World, str, Arguments], list[Any]]]] = {
    "DescribeRegions": ("regionInfo", _regions),
    "DescribeAvailabilityZones": ("availabilityZoneInfo", _zones),
    "DescribeInstanceTypeOfferings": ("instanceTypeOfferingSet", _offerings),
    "DescribeInstanceTypes": ("instanceTypeSet", _types),
    "DescribeSpotPriceHistory": ("spotPriceHistorySet", _spot),
    "DescribeCapacityBlockOfferings": ("capacityBlockOfferingSet", _blocks),
    "GetSpotPlacementScores": ("spotPlacementScoreSet", _scores),
}


PAGED = EC2.keys() - {"DescribeRegions", "DescribeAvailabilityZones"}


# --- Price list and quotas ---------------------------------------------------------------------------


def products(world: World, request: Mapping[str, Any], *, honours_filters: bool) -> list[str]:
    """The products that match, each a JSON text, as ``GetProducts`` returns them."""
    wanted = {f["Field"]: f["Value"] for f in request["Filters"]}
    if not honours_filters:
        wanted = {"regionCode": wanted["regionCode"]}
    return [
        json.dumps(product)
        for product in world.products
        if wanted.items() <= product["product"]["attributes"].items()
    ]
