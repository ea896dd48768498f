"""An offer file of EC2 as AWS publishes it: lines about the file, a header, and a row for each price.

The names of the columns are those that gpuhunt 0.1.34 reads, among most of the others; every field that is
not empty stands in quotes, as it says there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

COLUMNS = (
    "SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate", "StartingRange",
    "EndingRange", "Unit", "PricePerUnit", "Currency", "LeaseContractLength", "PurchaseOption",
    "OfferingClass", "Product Family", "serviceCode", "Location", "Location Type", "Instance Type",
    "Current Generation", "Instance Family", "vCPU", "Memory", "Storage", "Network Performance", "Tenancy",
    "Operating System", "License Model", "usageType", "operation", "CapacityStatus", "GPU", "GPU Memory",
    "MarketOption", "Pre Installed S/W", "Region Code", "serviceName",
)  # fmt: skip
HEAD = (
    '"FormatVersion","v1.0"',
    '"Disclaimer","This pricing list is for informational purposes only, subject to ""terms"""',
    '"Publication Date","2026-11-20T18:04:11Z"',
    '"Version","20261120180411"',
    '"OfferCode","AmazonEC2"',
)


def row(instance_type: str = "p5.48xlarge", usd: str = "55.0400000000", **changes: str) -> dict[str, str]:
    """The list price of a machine; underscores of names stand for spaces."""
    facts = {
        "SKU": "8D49XP354UEYTHGM", "TermType": "OnDemand", "Unit": "Hrs", "PricePerUnit": usd,
        "Currency": "USD", "Product Family": "Compute Instance", "Location Type": "AWS Region",
        "Instance Type": instance_type, "Instance Family": "GPU instance", "Tenancy": "Shared",
        "Operating System": "Linux",
        "License Model": "No License required", "operation": "RunInstances", "CapacityStatus": "Used",
        "GPU": "8", "MarketOption": "OnDemand", "Pre Installed S/W": "NA", "Region Code": "us-east-1",
        "PriceDescription": f"${usd} per On Demand Linux {instance_type} Instance Hour",
    }  # fmt: skip
    return facts | {name.replace("_", " "): value for name, value in changes.items()}


def offer_file(*rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> str:
    """The whole file."""
    header = ",".join(f'"{column}"' for column in columns)
    return "\n".join((*HEAD, header, *(_line(one, columns) for one in rows))) + "\n"


def publish(root: Path, region: str, text: str | bytes) -> Path:
    """Put a file where a region's lies on the server."""
    path = root / f"offers/v1.0/aws/AmazonEC2/current/{region}/index.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _line(facts: dict[str, str], columns: Iterable[str]) -> str:
    return ",".join(f'"{facts[column]}"' if facts.get(column) else "" for column in columns)
